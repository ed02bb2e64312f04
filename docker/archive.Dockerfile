# Keeps data that L1 only names: read by HTTP on 9650, written to on 9651, with health and metrics.
#   docker build -f docker/archive.Dockerfile -t blindfold/archive docker      (after binaries.Dockerfile or prebuilt.Dockerfile)
# The program, the libraries that it loads, an empty /data: no shell, no package manager.
ARG BINARIES=blindfold/binaries
FROM ${BINARIES} AS binaries

FROM scratch
COPY --from=binaries /image/blindfold/ /
COPY --from=binaries --chown=10001:10001 /image/data/ /
LABEL org.opencontainers.image.title="Blindfold: archive of data" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
USER 10001:10001
WORKDIR /data
EXPOSE 9650 9651
# Ends in order: what is being read and written.
STOPSIGNAL SIGTERM
# Whether the process runs. Not readiness: one that is full still gives what it has.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/blindfold", "health", "http://127.0.0.1:9651/healthz"]
ENTRYPOINT ["/blindfold", "archive"]
CMD ["--dir", "/data", "--read-addr", "0.0.0.0:9650", "--write-addr", "0.0.0.0:9651", "--token-file", "/run/secrets/archive.token"]
