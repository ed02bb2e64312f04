# The execution client of a sequencer or of a full node: public reads on 8645, Engine API on 8651.
#   docker build -f docker/execution.Dockerfile -t blindfold/execution docker      (after binaries.Dockerfile or prebuilt.Dockerfile)
# One program with the libraries that it loads, and an empty /data: no shell.
ARG BINARIES=blindfold/binaries
FROM ${BINARIES} AS binaries

FROM scratch
COPY --from=binaries /image/execution/ /
COPY --from=binaries --chown=10001:10001 /image/data/ /
LABEL org.opencontainers.image.title="Blindfold: execution client"
USER 10001:10001
WORKDIR /data
EXPOSE 8645 8651
# It writes its head down and ends.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/blindfold-node", "--check", "http://127.0.0.1:8645"]
ENTRYPOINT ["/blindfold-node"]
# Which requests reach the public port is the network's to say: host names differ between deployments. The Engine API has
# its secret.
CMD ["--datadir", "/data/chain", "--genesis", "/etc/blindfold/chain/genesis.json", "--jwt-secret", "/run/secrets/jwt.hex", \
     "--http-addr", "0.0.0.0", "--http-vhosts", "*", "--auth-addr", "0.0.0.0"]
