# Compiles every program once; the images of the roles take theirs from here. Nothing but packages of the registries goes in:
# Debian's, crates.io, Go modules, npm.
#   docker build -f docker/binaries.Dockerfile -t blindfold/binaries .      (context: the repository)
# `scripts/containers build` does this and then the images. prebuilt.Dockerfile takes programs that are compiled already.
ARG BASE=debian:bookworm-slim
ARG RUST_IMAGE=rust:1.95.0-bookworm
ARG GO_IMAGE=golang:1.26-bookworm
ARG NODE_IMAGE=node:22-bookworm-slim

FROM ${RUST_IMAGE} AS blindfold
WORKDIR /source
COPY . .
# `dev` compiles in a fraction of the time, and computes more slowly.
ARG PROFILE=release
ARG FEATURES=
# Paths of this machine would otherwise be in the panics' messages of the program.
ENV CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=/target RUSTFLAGS="--remap-path-prefix=/source=. --remap-path-prefix=/usr/local/cargo=cargo"
RUN cargo build --locked --profile "$PROFILE" -p blindfold --features "$FEATURES" \
    && mkdir /programs && cp "/target/$([ "$PROFILE" = dev ] && echo debug || echo "$PROFILE")/blindfold" /programs/ \
    && strip /programs/blindfold && rm -rf /target

FROM ${GO_IMAGE} AS node
WORKDIR /source
COPY crates/engine/node .
RUN CGO_ENABLED=1 go build -tags netgo,osusergo -mod=readonly -trimpath -ldflags=-s -o /programs/blindfold-node .

FROM ${NODE_IMAGE} AS l1
WORKDIR /source
COPY contracts/package.json contracts/package-lock.json ./
RUN npm ci --no-audit --no-fund && mkdir /programs \
    && cp node_modules/@foundry-rs/anvil-*/bin/anvil node_modules/@foundry-rs/cast-*/bin/cast /programs/

FROM ${BASE} AS binaries
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY docker/gather /
COPY --from=blindfold /programs /programs
COPY --from=node /programs /programs
COPY --from=l1 /programs /programs
RUN /gather /image/blindfold /programs/blindfold && /gather /image/execution /programs/blindfold-node \
    && /gather /image/l1 /programs/anvil /programs/cast \
    && for image in blindfold l1; do install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "/image/$image/etc/ssl/certs/ca-certificates.crt"; done \
    && mkdir -p /image/data/data && rm -rf /programs
