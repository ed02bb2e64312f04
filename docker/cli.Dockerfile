# The commands for people: wallet, l1, dealer, genesis, doctor, store. Start it with the command as arguments.
#   docker build -f docker/cli.Dockerfile -t blindfold/cli docker      (after binaries.Dockerfile or prebuilt.Dockerfile)
ARG BINARIES=blindfold/binaries
FROM ${BINARIES} AS binaries

FROM scratch
COPY --from=binaries /image/blindfold/ /
LABEL org.opencontainers.image.title="Blindfold: commands" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
USER 10001:10001
ENTRYPOINT ["/blindfold"]
CMD ["--help"]
