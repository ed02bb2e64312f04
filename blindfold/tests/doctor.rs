//! `blindfold doctor` beside a whole network: what it says when all is well, and of each thing that is not.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use blindfold::devnet::{Devnet, DevnetOptions, MEMBERS, Progress, ports::Ports};
use blindfold_client::Node;
use serde_json::{Value, json};
use tokio::process::Command;

/// No server listens on this port.
const NOBODY: &str = "http://127.0.0.1:1";

/// The doctor of one run's folder.
struct Doctor {
    dir: PathBuf,
}

/// What the doctor found, as JSON.
struct Report {
    status: Option<i32>,
    findings: Vec<Value>,
    /// Everything that it printed.
    text: String,
}

impl Doctor {
    async fn run(&self, role: &str, file: &str, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blindfold"));
        command.args(["doctor", role, "--config"]).arg(self.dir.join(file)).args(more);
        command.output().await.expect("it starts")
    }

    async fn look(&self, role: &str, file: &str, sets: &[&str]) -> Report {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let arguments: Vec<&str> = ["--json", "--timeout-ms", "2000"].into_iter().chain(sets).collect();
        let output = self.run(role, file, &arguments).await;
        let printed = [output.stdout.as_slice(), &output.stderr].concat();
        let text = String::from_utf8(printed).expect("text");
        let json: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"));
        let findings = json["findings"].as_array().expect("a list").clone();
        Report { status: output.status.code(), findings, text }
    }

    async fn sequencer(&self, sets: &[&str]) -> Report {
        self.look("sequencer", "sequencer.toml", sets).await
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }
}

impl Report {
    /// The one finding of this level about this.
    fn one(&self, level: &str, area: &str, subject: &str) -> (&str, &str) {
        let fits = |finding: &&Value| {
            finding["level"] == level && finding["area"] == area && finding["subject"] == subject
        };
        let fitting: Vec<&Value> = self.findings.iter().filter(fits).collect();
        let [finding] = fitting.as_slice() else {
            panic!("{} of {level} {area} {subject} in\n{}", fitting.len(), self.text);
        };
        (finding["found"].as_str().expect("text"), finding["next"].as_str().unwrap_or_default())
    }

    /// An error about this, what it says and what is to be done, and exit status 1.
    fn error(&self, area: &str, subject: &str, found: &str, next: &str) {
        assert_eq!(self.status, Some(1), "{}", self.text);
        self.says("error", area, subject, found, next);
    }

    fn says(&self, level: &str, area: &str, subject: &str, found: &str, next: &str) {
        let (says, advises) = self.one(level, area, subject);
        assert!(says.contains(found), "{says}: expected {found}");
        assert!(advises.contains(next), "{advises}: expected {next}");
    }

    /// How many findings have this level.
    fn count(&self, level: &str) -> usize {
        self.findings.iter().filter(|finding| finding["level"] == level).count()
    }
}

/// The healthy network, its doctor, and a way to L1.
async fn network() -> (Devnet, Doctor, tempfile::TempDir) {
    // The network's programs are found from the repository's root.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    std::env::set_current_dir(root).expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let options = DevnetOptions {
        ports: Ports::free(MEMBERS).expect("free ports"),
        max_batch: 8,
        accounts: 1,
        paying: 1,
        keep: true,
        ..DevnetOptions::new(folder.path().join("run"), env!("CARGO_BIN_EXE_blindfold").into())
    };
    let devnet = Devnet::start(options, &Progress::default()).await.expect("the network starts");
    let doctor = Doctor { dir: devnet.dir().to_owned() };
    (devnet, doctor, folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_what_is_wrong_and_nothing_else() {
    let (devnet, doctor, _folder) = network().await;
    everybody_is_well(&doctor).await;
    settings_are_told_all_at_once(&doctor).await;
    files_and_keys_of_others_are_told(&doctor).await;
    another_deployment_is_told(&doctor).await;
    dead_and_hanging_endpoints_are_told(&doctor).await;
    // L1's time goes on by an hour: for the network it is over.
    let l1 = Node::new(devnet.l1_url()).expect("a URL");
    l1.call("evm_increaseTime", &[json!(3_600)]).await.expect("anvil does it");
    l1.call("evm_mine", &[]).await.expect("anvil does it");
    let late = doctor.sequencer(&["sequencer.sealing.max_l1_age_ms=120000"]).await;
    late.error("clock", "this machine", "ms ahead of this machine's clock", "set this machine's clock right");
    devnet.stop().await.expect("it stops");
}

async fn everybody_is_well(doctor: &Doctor) {
    for (role, file) in [
        ("sequencer", "sequencer.toml"),
        ("committee", "member-2.toml"),
        ("hint-publisher", "hint-publisher.toml"),
        ("full-node", "full-node.toml"),
        ("proxy", "proxy.toml"),
    ] {
        let report = doctor.look(role, file, &[]).await;
        assert_eq!((report.status, report.count("error")), (Some(0), 0), "{role}: {}", report.text);
        report.says("ok", "process", "admin_addr", "runs and is ready", "");
        report.says("ok", "l1", "l1.url", "the contracts are there", "");
        // The development network has no bond, and nothing else to warn of.
        report.says(
            "warning",
            "l1",
            "bond",
            "0 ether of the sequencer",
            "blindfold l1 bond sequencer deposit",
        );
        assert_eq!(report.count("warning"), 1, "{role}: {}", report.text);
    }
    let sequencer = doctor.sequencer(&[]).await;
    sequencer.says("ok", "store", "sequencer.data_dir", "opens: sequencer of 0x", "");
    sequencer.says("ok", "l1", "signing_key", "is the sequencer on L1", "");
    sequencer.says("ok", "execution", "execution.engine_url", "takes the secret", "");
    sequencer.says("ok", "peers", "sequencer.members[0].url", "member 1, version 0", "");
    sequencer.says("ok", "peers", "sequencer.members[0].url", "its clock agrees", "");
    let member = doctor.look("committee", "member-2.toml", &[]).await;
    member.says("ok", "l1", "key", "member 2 of epoch 1", "");
    let table = doctor.run("sequencer", "sequencer.toml", &["--deep"]).await;
    let text = String::from_utf8_lossy(&table.stdout);
    assert!(
        table.status.success() && text.contains("equations hold") && text.contains("\nwarning  "),
        "{text}"
    );
}

async fn settings_are_told_all_at_once(doctor: &Doctor) {
    let sets = ["l1.urls=x", "sequencer.rpc_addr=nowhere", "sequencer.sealing.slot_ms=soon", "colour=red"];
    let report = doctor.sequencer(&sets).await;
    report.error("settings", "l1.urls", "is no key", "remove `l1.urls`");
    report.error("settings", "colour", "is no key; there are chain, parameters", "remove `colour`");
    report.error(
        "settings",
        "sequencer.sealing.slot_ms",
        "is a string, expected an integer",
        "correct the value",
    );
    report.error("settings", "sequencer.rpc_addr", "", "correct the value of `sequencer.rpc_addr`");
    let report = doctor.sequencer(&["sequencer.sealing.slot_ms=0"]).await;
    report.error("settings", &doctor.path("sequencer.toml"), "sealing.slot_ms", "correct the setting");
    let missing = doctor.look("sequencer", "nothing.toml", &[]).await;
    missing.error("settings", &doctor.path("nothing.toml"), "cannot read", "--config");
}

async fn files_and_keys_of_others_are_told(doctor: &Doctor) {
    let report = doctor.sequencer(&["signing_key.file=/nonexistent.json"]).await;
    report.error(
        "files",
        "signing_key.file",
        "/nonexistent.json: No such file",
        "correct `signing_key.file`",
    );
    report.says("not_checked", "keys", "signing_key", "was not opened", "its files");
    let other = format!("signing_key.file={}", doctor.path("keys/watcher.json"));
    let report = doctor.sequencer(&[&other]).await;
    report.error("l1", "signing_key", "L1 does not name 0x", "blindfold l1 sequencer name 0x");

    let other = format!("key.file={}", doctor.path("committee/member-3.key"));
    let report = doctor.look("committee", "member-2.toml", &[&other]).await;
    report.says("ok", "l1", "key", "member 3 of epoch 1", "");
    report.error("store", "data_dir", "the store of member-2, not of member-3", "`data_dir`");
    report.error(
        "settings",
        "member",
        "member.peers: member 3 is this member itself",
        "correct that setting",
    );

    let password = doctor.dir.join("wrong-password");
    fs::write(&password, "wrong").expect("written");
    let wrong = format!("posting_key.password_file={}", password.display());
    let report = doctor.sequencer(&[&wrong]).await;
    report.error("keys", "posting_key", "the password does not open", "`posting_key.password_file`");
    // Whatever the process's mask left.
    assert!(report.findings.iter().any(|finding| finding["subject"] == "posting_key.password_file"));

    let jwt = doctor.dir.join("jwt-of-others");
    fs::write(&jwt, "11".repeat(32)).expect("written");
    let report = doctor.sequencer(&[&format!("execution.jwt_secret={}", jwt.display())]).await;
    report.error("execution", "execution.engine_url", "refused our token", "--jwt-secret");
    assert!(!report.text.contains(&"11".repeat(32)));

    let nodes = format!("sequencer.data_dir={}", doctor.path("full-node"));
    let report = doctor.sequencer(&[&nodes]).await;
    report.error(
        "store",
        "sequencer.data_dir",
        "the store of full_node, not of sequencer",
        "`sequencer.data_dir`",
    );
}

async fn another_deployment_is_told(doctor: &Doctor) {
    let text = fs::read_to_string(doctor.dir.join("rollup.json")).expect("it is there");
    let altered = |pointer: &str, value: Value| {
        let mut chain: Value = serde_json::from_str(&text).expect("JSON");
        *chain.pointer_mut(pointer).expect("a field") = value;
        let path = doctor.dir.join("rollup-of-others.json");
        fs::write(&path, chain.to_string()).expect("written");
        format!("chain={}", path.display())
    };
    let report = doctor.sequencer(&[&altered("/deployment/l1ChainId", json!(31_338))]).await;
    report.error("l1", "l1.url", "serves chain 31337, not 31338", "`deployment.l1ChainId`");
    report.says("not_checked", "l1", "what L1 says", "without L1", "`l1.url`");
    report.error("store", "sequencer.data_dir", "this is the store of deployment 0x", "own folder");

    let report = doctor.sequencer(&[&altered("/feeVault", json!(format!("0x{}", "77".repeat(20))))]).await;
    report.error("l1", "l1.url", "there is no contract FeeVault", "rollup.json of this deployment");

    let report = doctor.look("full-node", "full-node.toml", &[&altered("/chainId", json!(7))]).await;
    report.error("execution", "execution.engine_url", "its chain is 42069, ours is 7", "blindfold-node");
    report.error(
        "peers",
        "full_node.sequencer_urls[0]",
        "serves another chain",
        "`full_node.sequencer_urls[0]`",
    );
}

async fn dead_and_hanging_endpoints_are_told(doctor: &Doctor) {
    let report = doctor.sequencer(&[&format!("execution.engine_url={NOBODY}")]).await;
    report.error("execution", "execution.engine_url", "did not answer", "start the execution client");
    let report =
        doctor.look("committee", "member-2.toml", &[&format!("member.sequencer_urls={NOBODY}")]).await;
    report.error("peers", "member.sequencer_urls[0]", "no answer", "start that role");
    let report = doctor
        .sequencer(&["l1.url=http://user:hunter2@127.0.0.1:1/v3/0123456789abcdef0123456789abcdef"])
        .await;
    report.error("l1", "l1.url", "http://[redacted]@127.0.0.1:1/v3/[redacted]", "start your L1 node");
    assert!(!report.text.contains("hunter2") && !report.text.contains("0123456789abcdef"), "{}", report.text);

    // Takes connections, and answers none.
    let hanging = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = hanging.local_addr().expect("an address");
    let set = format!("l1.url=http://{address}");
    let sets = [set.as_str()];
    let looked = doctor.sequencer(&sets);
    let report = tokio::time::timeout(Duration::from_secs(60), looked).await.expect("it does not hang");
    report.error("l1", "l1.url", "did not answer eth_chainId within 2000 ms", "start your L1 node");
    report.says("ok", "peers", "sequencer.members[3].url", "member 4", "");
    report.says("ok", "execution", "execution.http_url", "block", "");
    let set = format!("sequencer.admin_addr={address}");
    let report = doctor.sequencer(&[&set]).await;
    report.error("process", "admin_addr", "no answer within 2000 ms", "restart it");
    let report = doctor.sequencer(&["sequencer.admin_addr=127.0.0.1:1"]).await;
    assert_eq!(report.status, Some(0));
    report.says("not_checked", "process", "admin_addr", "nobody listens at 127.0.0.1:1", "start the role");
}
