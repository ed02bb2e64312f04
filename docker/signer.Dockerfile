# The sequencer's key in a process of its own: for sequencers with a certificate on 9610, health and metrics on 9611.
#   docker build -f docker/signer.Dockerfile -t blindfold/signer docker      (after binaries.Dockerfile or prebuilt.Dockerfile)
# The program, the libraries that it loads, an empty /data: no shell, no package manager.
ARG BINARIES=blindfold/binaries
FROM ${BINARIES} AS binaries

FROM scratch
COPY --from=binaries /image/blindfold/ /
COPY --from=binaries --chown=10001:10001 /image/data/ /
LABEL org.opencontainers.image.title="Blindfold: signer" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
USER 10001:10001
WORKDIR /data
EXPOSE 9610 9611
# Ends in order: calls under way.
STOPSIGNAL SIGTERM
# Whether the process runs. Not readiness: a restart begins no fresh record.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/blindfold", "health", "http://127.0.0.1:9611/healthz"]
ENTRYPOINT ["/blindfold", "signer"]
CMD ["--config", "/etc/blindfold/signer.toml"]
