# The encrypting proxy of one's own wallets: JSON-RPC on 9590, health and metrics on 9591.
#   docker build -f docker/proxy.Dockerfile -t blindfold/proxy docker      (after binaries.Dockerfile or prebuilt.Dockerfile)
# The program, the libraries that it loads, an empty /data: no shell, no package manager.
ARG BINARIES=blindfold/binaries
FROM ${BINARIES} AS binaries

FROM scratch
COPY --from=binaries /image/blindfold/ /
COPY --from=binaries --chown=10001:10001 /image/data/ /
LABEL org.opencontainers.image.title="Blindfold: encrypting proxy" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
USER 10001:10001
WORKDIR /data
EXPOSE 9590 9591
# Ends in order: calls under way, a header under way.
STOPSIGNAL SIGTERM
# Whether the process runs. Not readiness: what restarts an unhealthy container would keep it from ever catching up.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/blindfold", "health", "http://127.0.0.1:9591/healthz"]
ENTRYPOINT ["/blindfold", "proxy"]
CMD ["--config", "/etc/blindfold/proxy.toml"]
