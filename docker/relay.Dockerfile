# A relay: it hands the feed and the public reads on. JSON-RPC on 9620, health and metrics on 9621.
#   docker build -f docker/relay.Dockerfile -t blindfold/relay docker      (after binaries.Dockerfile or prebuilt.Dockerfile)
# The program and the libraries that it loads: no shell, no package manager, and no /data, since it keeps nothing.
ARG BINARIES=blindfold/binaries
FROM ${BINARIES} AS binaries

FROM scratch
COPY --from=binaries /image/blindfold/ /
LABEL org.opencontainers.image.title="Blindfold: relay" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
USER 10001:10001
EXPOSE 9620 9621
# Ends in order: calls under way.
STOPSIGNAL SIGTERM
# Whether the process runs. Not readiness: what restarts an unhealthy container would keep it from ever catching up.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/blindfold", "health", "http://127.0.0.1:9621/healthz"]
ENTRYPOINT ["/blindfold", "relay"]
CMD ["--config", "/etc/blindfold/relay.toml"]
