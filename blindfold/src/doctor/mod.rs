//! `blindfold doctor`: what would keep a role from starting, or from going on, found out beside it and without starting it.
//!
//! Everything is looked at as the role itself would: its settings are read by the same code, its keys opened, its L1 and its
//! execution client asked the same questions. Nothing is written and nothing is sent but questions, each with a time limit; a
//! server that hangs holds up its own rows only.

mod accounts;
mod archives;
mod execution;
mod finding;
mod l1;
mod local;
mod peers;
mod process;
mod registry;
mod store;
mod subject;

use std::time::Duration;

use anyhow::{Result, bail};
use blindfold_runtime::{blocking, joined, spawn};
use blindfold_tls::ClientTls;
use clap::{Args, ValueEnum};
use tokio::time::timeout;

use self::{
    finding::{Area, Finding, Report},
    local::Local,
    subject::Examinable,
};
use crate::{
    roles::{
        CommitteeSettings, CoprocessorSettings, FullNodeSettings, GatewaySettings, HintPublisherSettings,
        ProxySettings, RelaySettings, SequencerSettings, SignerSettings,
    },
    settings::{Examined, FaultKind, SettingFault, SettingsArgs, examine},
    wallet::print,
};

pub(crate) const EXAMPLES: &str = "Examples:
  blindfold doctor sequencer --config sequencer.toml
  blindfold doctor committee --config member-1.toml --json
  blindfold doctor full-node --config full-node.toml --deep --timeout-ms 20000

Run it as the user, in the folder and with the environment of the role; the role may be running. It writes nothing, and
prints no secret. The exit status is 1 where there is an error; warnings alone leave it 0.";

/// A check of several questions may take so many times as long as one.
const QUESTIONS_PER_CHECK: u64 = 6;

/// A role by the name of its command.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    Sequencer,
    Signer,
    Committee,
    HintPublisher,
    FullNode,
    Relay,
    Gateway,
    Coprocessor,
    Proxy,
}

/// Options of `blindfold doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The role whose settings these are
    role: RoleName,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Check the equations of the parameter files, too: seconds of work
    #[arg(long)]
    deep: bool,
    /// How long a server may take for one answer, in milliseconds
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout_ms: u64,
}

/// How long others are waited for.
#[derive(Clone, Copy)]
struct Patience {
    /// For one answer.
    answer_ms: u64,
}

impl Patience {
    /// For a check of several questions.
    fn check_ms(self) -> u64 {
        self.answer_ms.saturating_mul(QUESTIONS_PER_CHECK)
    }
}

/// Looks, and prints what was found.
///
/// # Errors
/// When there is an error among the findings.
pub(crate) async fn run(args: DoctorArgs) -> Result<()> {
    let report = match args.role {
        RoleName::Sequencer => look::<SequencerSettings>(&args).await,
        RoleName::Signer => look::<SignerSettings>(&args).await,
        RoleName::Committee => look::<CommitteeSettings>(&args).await,
        RoleName::HintPublisher => look::<HintPublisherSettings>(&args).await,
        RoleName::FullNode => look::<FullNodeSettings>(&args).await,
        RoleName::Relay => look::<RelaySettings>(&args).await,
        RoleName::Gateway => look::<GatewaySettings>(&args).await,
        RoleName::Coprocessor => look::<CoprocessorSettings>(&args).await,
        RoleName::Proxy => look::<ProxySettings>(&args).await,
    };
    print(args.json, &report, report.text())?;
    match report.errors {
        0 => Ok(()),
        1 => bail!("one finding is an error: it says what to do next"),
        errors => bail!("{errors} findings are errors: each says what to do next"),
    }
}

async fn look<S: Examinable>(args: &DoctorArgs) -> Report {
    let Examined { settings, faults } = examine::<S>(S::NAME, &args.settings);
    let file = args.settings.config.as_ref().map(|path| path.display().to_string());
    let source = file.unwrap_or_else(|| "environment".to_owned());
    let mut findings: Vec<Finding> = faults.into_iter().map(|fault| of_fault(fault, &source)).collect();
    let Some(settings) = settings else {
        let next = "correct the settings, and run this again";
        findings.push(Finding::not_checked(Area::Settings, "all else", "the settings do not tell", next));
        return Report::new(S::NAME, findings);
    };
    if let Ok(tls) = ClientTls::open(settings.tls()) {
        // What is asked below is asked as the role asks. False: a doctor looks once.
        blindfold_tls::install(tls);
    }
    let subject = settings.subject();
    findings.extend(subject.faults.iter().map(|fault| {
        Finding::error(Area::Settings, source.clone(), fault, "correct the setting that it names")
    }));
    if findings.is_empty() {
        findings.push(Finding::ok(Area::Settings, source, "every key is known and has a value that works"));
    }
    findings.extend(settings.advice());
    let patience = Patience { answer_ms: args.timeout_ms };
    let archives = archives::look(subject.l1.clone(), settings.archive_tokens(), patience);
    let (all_else, archives) = tokio::join!(look_at(subject, args), archives);
    findings.extend(all_else.into_iter().chain(archives));
    Report::new(S::NAME, findings)
}

fn of_fault(SettingFault { key, kind, what }: SettingFault, source: &str) -> Finding {
    let next = match kind {
        FaultKind::Unreadable => {
            let next = "correct the role's TOML file, or name another with --config";
            return Finding::error(Area::Settings, source, what, next);
        }
        FaultKind::Missing => format!("set `{key}`"),
        FaultKind::Unknown => format!("remove `{key}`, or give it its right name"),
        FaultKind::Unusable => format!("correct the value of `{key}`"),
    };
    Finding::error(Area::Settings, key, what, format!("{next}; docs/operate.md lists the keys of this role"))
}

/// This machine first, since it says what the others are asked for; then all others at the same time.
async fn look_at(subject: subject::Subject, args: &DoctorArgs) -> Vec<Finding> {
    let patience = Patience { answer_ms: args.timeout_ms };
    let deep = args.deep;
    let local = blocking(move || {
        let (local, findings) = local::look(&subject, deep);
        (subject, local, findings)
    });
    let Ok((subject, local, mut findings)) = local.await else {
        let next = "report this: it is a bug";
        return vec![Finding::error(Area::Files, "files", "this machine's files were not looked at", next)];
    };
    let mut opened = None;
    if let Some(place) = &subject.store {
        let (found_store, found) = store::look(place, &local, patience).await;
        opened = found_store;
        findings.extend(found);
    }
    findings.extend(look_at_others(subject, local, opened, patience).await);
    findings
}

async fn look_at_others(
    subject: subject::Subject,
    local: Local,
    store: Option<store::OpenedStore>,
    patience: Patience,
) -> Vec<Finding> {
    let mut checks = Vec::new();
    let chain = local.chain.clone();
    checks.push(spawn(process::look(subject.admin, patience)));
    if let Some(execution) = subject.execution.clone() {
        let blocks = store.as_ref().map(|opened| opened.store.clone());
        checks.push(spawn(execution::look(execution, chain.clone(), blocks, patience)));
    }
    let payer = accounts::payer(&local);
    let (quorum, leaders) = (subject.quorum(&local), subject.leaders());
    let peers: Vec<_> = subject
        .peers
        .iter()
        .map(|peer| spawn(peers::look(peer.clone(), chain.clone(), payer, patience)))
        .collect();
    let mut findings = l1::look(subject, local, store, patience).await;
    for check in checks {
        findings.extend(joined(check.await).unwrap_or_default());
    }
    let (mut members, mut lead) = (0, 0);
    for peer in peers {
        let asked = joined(peer.await).unwrap_or_default();
        members += usize::from(asked.is_member_that_answers);
        lead += usize::from(asked.is_sequencer_that_leads);
        findings.extend(asked.findings);
    }
    findings.extend(quorum.and_then(|quorum| quorum.judge(members)));
    findings.extend(leaders.and_then(|leaders| leaders.judge(lead)));
    findings
}

/// What a check finds, or that it took too long.
async fn within(
    patience: Patience,
    area: Area,
    subject: &str,
    next: &str,
    check: impl Future<Output = Vec<Finding>>,
) -> Vec<Finding> {
    let limit_ms = patience.check_ms();
    match timeout(Duration::from_millis(limit_ms), check).await {
        Ok(findings) => findings,
        Err(_) => vec![Finding::error(area, subject, format!("no whole answer within {limit_ms} ms"), next)],
    }
}
