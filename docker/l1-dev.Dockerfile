# A development L1 (anvil, with a block a second, final two blocks later) and `cast`. Anybody can set balances on it:
# never for anything but trying out.
#   docker build -f docker/l1-dev.Dockerfile -t blindfold/l1-dev docker      (after binaries.Dockerfile or prebuilt.Dockerfile)
ARG BINARIES=blindfold/binaries
FROM ${BINARIES} AS binaries

FROM scratch
COPY --from=binaries /image/l1/ /
COPY --from=binaries --chown=10001:10001 /image/data/ /
LABEL org.opencontainers.image.title="Blindfold: development L1"
USER 10001:10001
WORKDIR /data
EXPOSE 8545
# It writes its state down.
STOPSIGNAL SIGINT
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/cast", "block-number", "--rpc-url", "http://127.0.0.1:8545"]
ENTRYPOINT ["/anvil"]
CMD ["--hardfork", "osaka", "--slots-in-an-epoch", "1", "--host", "0.0.0.0", "--port", "8545", "--chain-id", "31337", \
     "--block-time", "1", "--state", "/data/state.json", "--state-interval", "10", "--quiet"]
