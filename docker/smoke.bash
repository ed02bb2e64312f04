# shellcheck shell=bash
# The part of scripts/containers that tries everything out: `--smoke`. Sourced by it.

daemon='' tap='' keep=''

# Everything that the run made goes, however it ends.
smoke_cleanup() {
    local ended=$?
    trap - EXIT INT TERM
    set +e
    if [ "$ended" != 0 ] && [ -n "${deployment:-}" ] && [ -e "${deployment:-}/chain/genesis.json" ]; then
        local name
        for name in $(services); do
            echo "--- $name: $(health_of "$(container "$name")")" >&2
            docker logs --tail 12 "$(container "$name")" 2>&1 | cut -c 1-400 >&2
        done
    fi
    step "taking everything away"
    if [ -n "$daemon" ]; then
        # Whatever runs in its process namespace, and what is mounted in its mount namespace, ends with it.
        kill -KILL "$daemon" 2>/dev/null
        wait "$daemon" 2>/dev/null
        [ -z "$tap" ] || kill "$tap" 2>/dev/null
        rm -rf "$work/daemon"
        find /sys/fs/cgroup -mindepth 1 -depth -type d -path "*/blindfold-containers-$$*" -exec rmdir {} + 2>/dev/null
    else
        docker ps --all --quiet --filter name=blindfold-smoke | xargs -r docker rm --force --volumes >/dev/null 2>&1
        docker volume ls --quiet --filter name=blindfold-smoke | xargs -r docker volume rm --force >/dev/null 2>&1
        docker network ls --quiet --filter name=blindfold-smoke | xargs -r docker network rm >/dev/null 2>&1
        docker image ls --quiet "$registry/*" 2>/dev/null | sort -u | xargs -r docker image rm --force >/dev/null 2>&1
    fi
    rm -rf "$work/smoke" "$work/context" "$work/programs"
    exit "$ended"
}

# A daemon of the run's own. Its mounts, its network with all bridges and rules, and its processes are in namespaces that end
# with it; slirp4netns gives it the way out that images need for their packages.
start_daemon() {
    local folder=$work/daemon inner
    rm -rf "$folder"
    mkdir -p "$folder"
    # shellcheck disable=SC2016
    setpriv --pdeathsig KILL -- unshare --mount --net --pid --fork --kill-child --mount-proc -- bash -c '
        set -e
        ip link set lo up
        mount -t tmpfs tmpfs /run
        until ip link show tap0 >/dev/null 2>&1; do sleep 0.05; done
        sysctl -qw net.ipv4.ip_forward=1
        exec dockerd --data-root "$1/data" --exec-root "$1/exec" --pidfile "$1/pid" --host "unix://$1/socket" \
            --storage-driver overlay2 --dns 10.0.2.3 --cgroup-parent "blindfold-containers-$2"
    ' bash "$folder" "$$" >"$folder/log" 2>&1 9>&- &
    daemon=$!
    until inner=$(cat "/proc/$daemon/task/$daemon/children" 2>/dev/null) && [ -n "$inner" ]; do
        kill -0 "$daemon" 2>/dev/null || { tail -n 5 "$folder/log" >&2; cannot "no namespaces of one's own here"; }
        sleep 0.05
    done
    # The namespaces are there when the child's differ from ours.
    until [ "$(readlink "/proc/${inner// /}/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
    setpriv --pdeathsig KILL -- slirp4netns --configure --mtu=65520 --disable-host-loopback "${inner// /}" tap0 >"$folder/tap.log" 2>&1 9>&- &
    tap=$!
    export DOCKER_HOST=unix://$folder/socket
    for _ in $(seq 300); do
        if docker info >/dev/null 2>&1; then return 0; fi
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 20 "$folder/log" "$folder/tap.log" >&2
    cannot "a Docker daemon does not start here"
}

# The base of all images, made of packages: no registry of images is needed.
import_base() {
    local tar=$work/base.tar
    if ! [ -s "$tar" ]; then
        mmdebstrap --quiet --format=tar --variant=minbase bookworm "$tar.new" 2>"$work/base.log" || { cat "$work/base.log" >&2; fail "no base image"; }
        mv "$tar.new" "$tar"
    fi
    docker import "$tar" "$registry/base:$tag" >/dev/null
}

# Whether the images are what docs/operate.md says of them.
check_images() {
    local name user
    for name in "${roles[@]}" "${servers[@]}"; do
        user=$(docker image inspect --format '{{.Config.User}}' "$registry/$name:$tag")
        [[ $user =~ ^1000[0-9]:1000[0-9]$ ]] || fail "the image $name runs as '$user'"
        [ "$name" = cli ] || [ "$name" = blackbox-exporter ] || [ "$(docker image inspect --format '{{if .Config.Healthcheck}}yes{{end}}' "$registry/$name:$tag")" = yes ] ||
            fail "the image $name has no health check"
        # PostgreSQL's entrypoint is a script.
        [ "$name" != postgres ] || continue
        if docker run --rm --entrypoint /bin/sh "$registry/$name:$tag" -c true >/dev/null 2>&1; then fail "the image $name has a shell"; fi
    done
    docker image ls --format '{{.Repository}} {{.Size}}' | grep "^$registry/" | sort | sed 's/^/  /' >&2
}

health_of() { docker inspect --format '{{.State.Status}} {{if .State.Health}}{{.State.Health.Status}}{{end}}' "$1" 2>/dev/null || true; }
# A service's container. Docker's own client: docker-compose takes a second to say anything.
container() {
    docker ps --all --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" \
        --filter "label=com.docker.compose.service=$1" --filter label=com.docker.compose.oneoff=False
}
services() {
    docker ps --all --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" --format '{{.Label "com.docker.compose.service"}}' | sort
}

# Waits until these services, or all of them, are ready.
ready() {
    local deadline=$((SECONDS + 240)) name left=("$@")
    [ $# -gt 0 ] || mapfile -t left < <(services)
    declare -A ids=()
    while [ "${#left[@]}" -gt 0 ]; do
        local still=()
        for name in "${left[@]}"; do
            ids[$name]=${ids[$name]:-$(container "$name")}
            case "$(health_of "${ids[$name]}")" in "running healthy" | "running ") ;; *) still+=("$name") ;; esac
        done
        left=(${still[@]+"${still[@]}"})
        [ "${#left[@]}" = 0 ] || [ "$SECONDS" -lt "$deadline" ] || {
            for name in "${left[@]}"; do
                echo "$name: $(health_of "${ids[$name]}")" >&2
                docker inspect --format '{{range .State.Health.Log}}{{.Output}}{{end}}' "${ids[$name]}" 2>/dev/null | tail -n 1 | cut -c 1-500 >&2
            done
            fail "not ready: ${left[*]}"
        }
        [ "${#left[@]}" = 0 ] || sleep 0.5
    done
}

wallet() {
    docker run --rm --network "${COMPOSE_PROJECT_NAME}_public" --read-only --cap-drop ALL --tmpfs /tmp \
        --volume "$deployment:/deployment:ro" --workdir /deployment \
        --env BLINDFOLD_KEY=secrets/proxy.json --env BLINDFOLD_PASSWORD_FILE=secrets/proxy.password \
        --env BLINDFOLD_CHAIN=chain/rollup.json --env BLINDFOLD_L1=http://l1:8545 "$registry/cli:$tag" wallet "$@"
}
to=0x00000000000000000000000000000000000b11dd
sent=0
# Encrypted transfers of one ether through the gateways, each until its transaction is in a block of the full node's.
transfers() {
    local count=$1 i
    for ((i = 0; i < count; i++)); do
        wallet send "$to" 1ether --wait 90 --node http://full-node:9580 --sequencer http://gateway-1:9620 --sequencer http://gateway-2:9620 >/dev/null 2>"$work/smoke/wallet.log" ||
            fail "a transfer did not arrive: $(cat "$work/smoke/wallet.log")"
        sent=$((sent + 1))
    done
    local balance
    balance=$(docker exec "$(container l1)" /cast balance --ether "$to" --rpc-url http://full-node:9580)
    [[ $balance =~ ^$sent\.0*$ ]] || fail "$sent ether were sent, and the full node says $balance"
}

# The sequencer that leads, once one does: the other refuses every call.
leader() {
    local name tries=0 account
    account=$(address_of "$deployment/secrets/proxy.json")
    while [ "$((tries += 1))" -lt 240 ]; do
        for name in sequencer-1 sequencer-2; do
            if docker exec "$(container l1)" /cast rpc --rpc-url "http://$name:9545" blind_getFeeAccount "$account" >/dev/null 2>&1; then
                echo "$name"
                return 0
            fi
        done
        sleep 0.25
    done
    fail "no sequencer leads"
}

# Waits until the deposit counts: its L1 block is final, and a header names it.
paid() {
    local tries=0 account
    until account=$(docker exec "$(container l1)" /cast rpc --rpc-url "http://$(leader):9545" blind_getFeeAccount \
        "$(address_of "$deployment/secrets/proxy.json")" 2>&1) && [[ $account =~ \"balance\":\"0x[1-9a-f] ]]; do
        [ "$((tries += 1))" -lt 120 ] || fail "the deposit does not count: $account"
        sleep 0.5
    done
}

smoke() {
    case "$*" in
        '') ;;
        --keep) keep=1 ;;
        *) fail "unknown argument $*; see --help" ;;
    esac
    local programs=$work/programs missing=() program
    [ "$(id -u)" = 0 ] || cannot "root is needed"
    if ! docker info >/dev/null 2>&1; then
        for program in docker dockerd mmdebstrap slirp4netns setpriv unshare iptables; do
            command -v "$program" >/dev/null || missing+=("$program")
        done
    fi
    docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null || missing+=(docker-compose)
    command -v openssl >/dev/null || missing+=(openssl)
    [ "${#missing[@]}" = 0 ] ||
        cannot "${missing[*]} missing: apt-get install docker.io docker-compose mmdebstrap slirp4netns iptables openssl"

    registry=blindfold-smoke tag=latest deployment=$work/smoke/deployment
    export COMPOSE_PROJECT_NAME=blindfold-smoke
    mkdir -p "$work"
    exec 9>"$work/lock"
    flock --nonblock 9 || fail "another run of --smoke has $work"
    rm -rf "$work/smoke"
    mkdir -p "$work/smoke"
    trap smoke_cleanup EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    rm -rf "$programs"
    mkdir -p "$programs"
    local l1_tools=$root/contracts/node_modules/@foundry-rs
    for program in "${CARGO_TARGET_DIR:-$root/target}/debug/blindfold" "$root/target/tools/blindfold-node" \
        "$l1_tools"/anvil-*/bin/anvil "$l1_tools"/cast-*/bin/cast; do
        [ -x "$program" ] || fail "$program is missing: scripts/devnet builds it"
        ln -s "$program" "$programs/"
    done

    local base=debian:bookworm-slim
    if ! docker info >/dev/null 2>&1; then
        step "a Docker daemon of this run's own"
        start_daemon
        step "base image: Debian bookworm, of packages"
        import_base
        base=$registry/base:$tag
    fi
    build --prebuilt "$programs" --base "$base"
    step "images: none has a shell or runs as root"
    check_images

    prepare "$deployment" --development
    step "the whole chain"
    compose "$deployment" up --detach >"$work/smoke/up.log" 2>&1 || { cat "$work/smoke/up.log" >&2; fail "it does not start"; }
    wallet deposit 0.1ether >/dev/null 2>&1 || fail "the first deposit into the fee account failed"
    ready
    paid
    step "ready; encrypted transfers, one after the other"
    transfers 3
    smoke_faults
    smoke_alone
    smoke_watching
    if [ -n "$keep" ]; then
        step "it runs until Ctrl-C: DOCKER_HOST=${DOCKER_HOST:-} scripts/containers compose $deployment ps"
        while sleep 3600; do :; done
    fi
    step "an orderly end"
    smoke_end
    step "$sent encrypted transfers arrived; all is well"
}

smoke_faults() {
    step "a member is killed: three of four go on"
    docker kill "$(container member-4)" >/dev/null
    transfers 1
    docker start "$(container member-4)" >/dev/null

    step "a gateway is killed: the other takes what comes"
    docker kill "$(container gateway-1)" >/dev/null
    transfers 1
    docker start "$(container gateway-1)" >/dev/null

    step "Redis is killed: gateways and hint publishers go on without"
    docker kill "$(container redis)" >/dev/null
    transfers 1
    docker start "$(container redis)" >/dev/null
    ready gateway-1 redis

    step "the signer is killed: what was on its way is sealed once it is back"
    docker kill "$(container signer)" >/dev/null
    docker start "$(container signer)" >/dev/null
    transfers 1
    ready signer

    local first
    first=$(leader)
    step "$first leads and is killed: the other goes on"
    docker kill "$(container "$first")" >/dev/null
    transfers 2
    [ "$(leader)" != "$first" ] || fail "$first leads though it was killed"
    docker start "$(container "$first")" >/dev/null
    ready sequencer-1 sequencer-2

    step "PostgreSQL: the server that takes writes is gone for good, its standby is promoted"
    docker kill "$(container postgres-1)" >/dev/null
    compose "$deployment" rm --force --stop -v postgres-1 >/dev/null 2>&1
    docker volume rm "${COMPOSE_PROJECT_NAME}_postgres-1" >/dev/null
    docker exec "$(container postgres-2)" /etc/blindfold/entrypoint promote >/dev/null
    step "PostgreSQL: an empty disk in its place becomes the standby"
    compose "$deployment" up --detach --no-recreate postgres-1 >/dev/null 2>&1
    ready postgres-1 sequencer-1 sequencer-2
    transfers 1
}

# The files of one party, each in a project of its own beside the chain, attached to its networks: where the chain is elsewhere,
# those are the internet. The member takes its disk along.
smoke_alone() {
    step "a full node with a proxy, a relay, an archive, and a member, each by its own file"
    local whole=$COMPOSE_PROJECT_NAME id deadline=$((SECONDS + 120))
    cat >"$work/smoke/full-node.yaml" <<YAML
networks: { default: { external: true, name: ${whole}_public } }
YAML
    cp "$work/smoke/full-node.yaml" "$work/smoke/relay.yaml"
    cp "$work/smoke/full-node.yaml" "$work/smoke/archive.yaml"
    cat >"$work/smoke/member.yaml" <<YAML
services:
  member:
    networks: { default: { aliases: [member-4] }, peers: { aliases: [member-4] } }
networks:
  default: { external: true, name: ${whole}_member-4 }
  peers: { external: true, name: ${whole}_peers }
volumes:
  data: { external: true, name: ${whole}_member-4 }
YAML
    alone() {
        BLINDFOLD_DEPLOYMENT=$deployment BLINDFOLD_REGISTRY=$registry BLINDFOLD_TAG=$tag BLINDFOLD_MEMBER=4 BLINDFOLD_BIND=127.0.0.2 \
            compose_program --project-name "$whole-$1" -f "$docker/compose.$1.yaml" -f "$work/smoke/$1.yaml" "${@:2}" \
            >"$work/smoke/alone.log" 2>&1 || fail "$(cat "$work/smoke/alone.log")"
    }
    docker stop "$(container member-4)" >/dev/null
    alone full-node --profile proxy up --detach
    alone relay up --detach
    alone archive up --detach
    alone member up --detach
    until [ "$(docker ps --filter health=healthy --format '{{.Label "com.docker.compose.project"}}' | grep -c "^$whole-\(full-node\|relay\|archive\|member\)$")" = 6 ]; do
        [ "$SECONDS" -lt "$deadline" ] || {
            for id in $(docker ps --all --quiet --filter "name=$whole-full-node" --filter "name=$whole-relay" --filter "name=$whole-archive" --filter "name=$whole-member_" --filter "name=$whole-member-member"); do
                docker inspect --format '{{.Name}} {{.State.Status}}{{range .State.Health.Log}} {{.Output}}{{end}}' "$id" 2>/dev/null | tail -c 600 >&2
                docker logs --tail 5 "$id" 2>&1 | cut -c 1-400 >&2
            done
            fail "not ready"
        }
        sleep 0.5
    done
    docker exec "$(container l1)" /cast chain-id --rpc-url http://proxy:9590 >/dev/null || fail "the proxy does not answer"
    docker exec "$(container l1)" /cast rpc --rpc-url http://relay:9620 blind_getFeeAccount \
        "$(address_of "$deployment/secrets/proxy.json")" >/dev/null || fail "the relay does not answer"
    # Three of four are needed, so that one has to vote and to give shares.
    docker kill "$(container member-1)" >/dev/null
    transfers 1
    docker start "$(container member-1)" >/dev/null
    alone full-node --profile proxy down --volumes --timeout 40
    alone relay down --timeout 40
    alone archive down --volumes --timeout 40
    alone member down --timeout 40
    docker start "$(container member-4)" >/dev/null
    ready member-1 member-4
}

# Whether Prometheus reaches everything, and all who share Redis are there again.
smoke_watching() {
    step "Prometheus reaches every role, and they Redis"
    local deadline=$((SECONDS + 60)) down
    query() { docker exec "$(container prometheus)" /promtool query instant http://127.0.0.1:9090 "$1"; }
    until down=$(query 'up == 0 or probe_success == 0') && [ -z "$down" ] && [ -n "$(query 'up{job="blindfold-coprocessor"} == 1')" ] &&
        [ -n "$(query 'count(blindfold_redis_connections == 1 and on (instance) blindfold_redis_seconds_count > 0) == 4')" ]; do
        [ "$SECONDS" -lt "$deadline" ] || fail "not reached: ${down:-$(query blindfold_redis_connections; query blindfold_redis_seconds_count; query blindfold_redis_errors_total)}"
        sleep 1
    done
}

# Every container ends by itself within its grace period, with status 0.
smoke_end() {
    local name id bad=()
    compose "$deployment" stop >/dev/null 2>&1
    for name in $(services); do
        id=$(container "$name")
        [ "$(docker inspect --format '{{.State.ExitCode}}' "$id")" = 0 ] || bad+=("$name $(docker inspect --format '{{.State.ExitCode}}' "$id")")
    done
    [ "${#bad[@]}" = 0 ] || fail "ended in disorder: ${bad[*]}"
}
