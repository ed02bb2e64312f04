# A full node: JSON-RPC on 9580, health and metrics on 9581.
#   docker build -f docker/full-node.Dockerfile -t blindfold/full-node docker      (after binaries.Dockerfile or prebuilt.Dockerfile)
# The program, the libraries that it loads, an empty /data: no shell, no package manager.
ARG BINARIES=blindfold/binaries
FROM ${BINARIES} AS binaries

FROM scratch
COPY --from=binaries /image/blindfold/ /
COPY --from=binaries --chown=10001:10001 /image/data/ /
LABEL org.opencontainers.image.title="Blindfold: full node" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
USER 10001:10001
WORKDIR /data
EXPOSE 9580 9581
# Ends in order: calls under way, a header under way.
STOPSIGNAL SIGTERM
# Whether the process runs. Not readiness: what restarts an unhealthy container would keep it from ever catching up.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/blindfold", "health", "http://127.0.0.1:9581/healthz"]
ENTRYPOINT ["/blindfold", "full-node"]
CMD ["--config", "/etc/blindfold/full-node.toml"]
