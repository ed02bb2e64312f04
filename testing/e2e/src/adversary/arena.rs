//! The network on which the attacks are made, with the accounts of those who make them and of those who suffer them.

use std::{collections::BTreeMap, fmt, path::PathBuf, process::ExitStatus, sync::Arc};

use alloy_primitives::{Address, B256, U256};
use anyhow::{Context, Result, anyhow, bail};
use blindfold::devnet::{
    Devnet, DevnetOptions, MEMBERS, Progress, THRESHOLD,
    accounts::{HINT_PUBLISHER, PROXY, SECOND_HINT_PUBLISHER, SEQUENCER, WATCHER, account_key, named_key},
    ports::{Ports, http, local},
    process::RoleProcess,
};
use blindfold_client::{CommitteeKey, Node, WalletEndpoints};
use blindfold_l1::{Bond, CommitteeSettings, L1Error, L1Writer};
use blindfold_protocol::{Envelope, L1Timing, SigningKey};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, CommitteeApiClient, HttpClient, ReceivedError, http_client,
    jsonrpsee::core::ClientError,
    types::{BatchInfo, EnvelopeState, Receipt, Status},
};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use super::{accounting::Accounting, injection::Injections, raw::RawL1};
use crate::{relay::Relay, traffic::Sender};

/// All deadlines of most networks, in L1 blocks of a second. Within them a slow machine has to do what is done in time on a
/// fast one; what waits for them to pass has blocks mined.
pub const TIMING: L1Timing = L1Timing {
    posting_deadline: 120,
    forced_delay: 8,
    answer_window: 24,
    hint_deadline: 100,
    challenge_window: 60,
    withdrawal_delay: 200,
    max_origin_age_seconds: 240,
};
/// What is fixed about committees: notice a little longer than a withdrawal takes.
pub const COMMITTEES: CommitteeSettings =
    CommitteeSettings { epoch_notice: 210, switch_lead: 16, min_members: MEMBERS, min_threshold: THRESHOLD };
/// Honest accounts that pay for their envelopes.
pub const USERS: usize = 4;
/// An honest account that has ether on L2 and no fee account.
pub const UNPAID: usize = USERS + 1;
/// The user who sees whether the chain goes on.
const GOES_ON: usize = 1;
/// How long what is under way between accounts takes to arrive.
const SETTLEMENT: Duration = Duration::from_secs(30);
/// The dishonest account that pays for malformed envelopes.
const SPOILER: usize = USERS;
/// Posts wrong hints, and fills the sequencer's bond for it to lose.
const FORGER: &str = "forger";
/// Challenges and accuses without a reason.
const BULLY: &str = "bully";
/// Reports and answers.
pub const REPORTER: &str = "reporter";
/// What the dishonest and the reporter own on L1, in wei.
pub const FUNDS_WEI: u128 = 10_000 * 1_000_000_000_000_000_000;
/// Ciphertexts in a sub-batch at most: dealing and checking stay quick.
pub const MAX_BATCH: u32 = 8;
/// How long anything may take that is waited for.
pub const WAIT: Duration = Duration::from_secs(90);
/// Lines of each log that are shown when a case fails.
const LOG_LINES: usize = 10;
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Looks again and again until there is an answer. Who does not answer now may do so later.
///
/// # Errors
/// The probe's own, and what was waited for when it takes too long.
pub async fn until<T>(what: &str, probe: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    within(WAIT, what, probe).await
}

async fn within<T>(
    wait: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + wait;
    loop {
        let unanswered = match probe().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => None,
            Err(error) if may_pass(&error) => Some(error),
            Err(error) => return Err(error),
        };
        if Instant::now() >= deadline {
            let vain = format!("waited {} s in vain for {what}", wait.as_secs());
            return Err(match unanswered {
                Some(error) => error.context(vain),
                None => anyhow!(vain),
            });
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// Whether the same question may be answered later.
fn may_pass(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<L1Error>().is_some_and(L1Error::is_transient)
            || cause.downcast_ref::<ReceivedError>().is_some_and(ReceivedError::retry)
            || cause.downcast_ref::<ClientError>().is_some_and(no_answer)
            || cause.downcast_ref::<reqwest::Error>().is_some_and(reqwest_may_pass)
    })
}

/// Whether no answer came, or one that says to try again.
fn no_answer(error: &ClientError) -> bool {
    match error {
        ClientError::Call(object) => ReceivedError::Refused(object.clone().into()).retry(),
        _ => true,
    }
}

/// Whether no whole answer came.
fn reqwest_may_pass(error: &reqwest::Error) -> bool {
    error.is_connect() || error.is_timeout() || error.is_request() || error.is_body() || error.is_decode()
}

/// A role that ended though nobody ended it.
#[derive(Debug)]
pub struct Ended {
    /// The role's name.
    pub role: String,
    status: ExitStatus,
    log_tail: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ended ({}); the end of its log:\n{}", self.role, self.status, self.log_tail)
    }
}

/// A running network.
pub struct Arena {
    /// The network.
    pub devnet: Devnet,
    /// Between the sequencer and everybody else.
    pub relay: Relay,
    /// What the relay adds to the feed.
    pub injections: Injections,
    /// L1's own interface.
    pub raw: RawL1,
    /// Honest users with a fee account.
    pub users: Vec<Sender>,
    /// The honest user without one.
    pub unpaid: Sender,
    /// A dishonest user with a fee account.
    pub spoiler: Sender,
    /// Who owns what.
    pub accounting: Accounting,
    node: HttpClient,
    sequencer: HttpClient,
}

impl Arena {
    /// Starts a network with these deadlines, whose first epoch ends with `last_number`.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(
        dir: PathBuf,
        ports: Ports,
        last_number: u64,
        timing: L1Timing,
        progress: &Progress,
    ) -> Result<Self> {
        let relay = Relay::start(local(0), local(ports.sequencer.0)).await?;
        let binary = crate::program()?;
        let address = relay.http_url("");
        let options = DevnetOptions {
            ports,
            keep: true,
            max_batch: MAX_BATCH,
            accounts: UNPAID + 1,
            paying: UNPAID,
            sequencer_urls: Some(Arc::new(move |role| format!("{address}{role}").into())),
            timing,
            committees: COMMITTEES,
            last_number,
            ..DevnetOptions::new(dir, binary)
        };
        let devnet = Devnet::start(options, progress).await?;
        let injections = Injections::default();
        relay.tamper(injections.tamper());
        let raw = RawL1::new(devnet.l1_url());
        for name in [FORGER, BULLY, REPORTER, SECOND_HINT_PUBLISHER] {
            let address = named_key(name).address();
            raw.call("anvil_setBalance", json!([address, U256::from(FUNDS_WEI)])).await?;
        }
        let committee = CommitteeKey::fetch(&devnet.l1, 1, None).await?;
        let mut users = Vec::new();
        for index in 0..=UNPAID {
            users.push(sender(&devnet, &relay, index, committee.clone()).await?);
        }
        let (unpaid, spoiler) = users.pop().zip(users.pop()).context("two more accounts")?;
        let config = ClientConfig::default();
        let node = http_client(&http(devnet.ports.full_node.0), &config)?;
        let sequencer = http_client(&http(devnet.ports.sequencer.0), &config)?;
        let accounting = Accounting::default();
        let mut arena =
            Self { devnet, relay, injections, raw, users, unpaid, spoiler, accounting, node, sequencer };
        arena.wait_for_deposits().await?;
        arena.accounting = Accounting::open(&arena, &arena.honest(), "user 0").await?;
        Ok(arena)
    }

    /// Who must not lose anything.
    pub fn honest(&self) -> Vec<(String, Address)> {
        let named = [HINT_PUBLISHER, SECOND_HINT_PUBLISHER, WATCHER, PROXY, REPORTER];
        let named = named.into_iter().map(|name| (name.to_owned(), named_key(name).address()));
        let users = (0..USERS).chain([UNPAID]);
        named.chain(users.map(|index| (format!("user {index}"), account_key(index).address()))).collect()
    }

    /// What honest accounts lost since the last case, once what is under way has arrived.
    ///
    /// # Errors
    /// When L1 or the full node does not answer.
    pub async fn losses(&self) -> Result<Vec<String>> {
        let deadline = Instant::now() + SETTLEMENT;
        loop {
            let losses = self.accounting.losses(self).await?;
            if losses.is_empty() || Instant::now() >= deadline {
                return Ok(losses);
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// That the chain goes on: somebody's transfer is executed.
    ///
    /// # Errors
    /// When it is not.
    pub async fn goes_on(&mut self) -> Result<()> {
        self.transfer(GOES_ON).await.context("the chain does not go on")?;
        Ok(())
    }

    /// The roles that ended though nobody ended them.
    ///
    /// # Errors
    /// When the system does not say how a process ended.
    pub fn ended(&mut self) -> Result<Vec<Ended>> {
        let mut ended = Vec::new();
        for process in self.devnet.processes() {
            if let Some(status) = process.ended()? {
                let (role, log_tail) = (process.name().to_owned(), process.log_tail());
                ended.push(Ended { role, status, log_tail });
            }
        }
        Ok(ended)
    }

    /// Each role and the last lines of its log.
    pub fn last_log_lines(&mut self) -> Vec<(String, String)> {
        let last = |process: &mut RoleProcess| {
            let tail = process.log_tail();
            let lines: Vec<&str> = tail.lines().collect();
            let lines = &lines[lines.len().saturating_sub(LOG_LINES)..];
            (process.name().to_owned(), lines.join("\n"))
        };
        self.devnet.processes().map(last).collect()
    }

    /// The roles that do not run, whoever ended them.
    pub fn not_running(&mut self) -> Vec<String> {
        let gone = self.devnet.processes().filter(|process| process.pid().is_err());
        gone.map(|process| process.name().to_owned()).collect()
    }

    /// An account of [`HINT_PUBLISHER`] and the like on L1.
    pub fn account(&self, key: SigningKey) -> L1Writer {
        L1Writer::new(self.devnet.l1.clone(), key)
    }

    /// The dishonest publisher.
    pub fn forger(&self) -> L1Writer {
        self.account(named_key(FORGER))
    }

    /// The dishonest challenger and accuser.
    pub fn bully(&self) -> L1Writer {
        self.account(named_key(BULLY))
    }

    /// Who reports what is wrong, beside the full node.
    pub fn reporter(&self) -> L1Writer {
        self.account(named_key(REPORTER))
    }

    /// The bond of the chain's sequencer.
    pub async fn bond(&self) -> Result<Bond> {
        Ok(self.devnet.l1.bond(self.devnet.chain.sequencer).await?)
    }

    /// The sequencer's key: it is the one who cheats.
    pub fn sequencer_key(&self) -> SigningKey {
        named_key(SEQUENCER)
    }

    /// Deposits count once their L1 block is final and a header has credited them.
    async fn wait_for_deposits(&self) -> Result<()> {
        for payer in (0..UNPAID).map(account_key).chain([named_key(PROXY)]) {
            let payer = payer.address();
            until(&format!("the deposit of {payer} to count"), async || {
                let account = self.node.get_fee_account(payer).await?;
                Ok((account.balance > 0).then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// What the full node says.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn status(&self) -> Result<Status> {
        Ok(BlindApiClient::get_status(&self.node).await?)
    }

    /// What the sequencer says.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn sequencer_status(&self) -> Result<Status> {
        Ok(BlindApiClient::get_status(&self.sequencer).await?)
    }

    /// One of the full node's counters.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn counter(&self, name: &str) -> Result<u64> {
        let status = self.status().await?;
        status.counters.get(name).copied().with_context(|| format!("the full node does not count {name}"))
    }

    /// Ordinary reads of the full node.
    ///
    /// # Errors
    /// When its URL cannot be used.
    pub fn reads(&self) -> Result<Node> {
        Ok(Node::new(&http(self.devnet.ports.full_node.0))?)
    }

    /// The full node's fee accounts.
    pub fn node(&self) -> &HttpClient {
        &self.node
    }

    /// A batch, as the full node verified it.
    ///
    /// # Errors
    /// When it has none of that number.
    pub async fn batch(&self, number: u64) -> Result<BatchInfo> {
        let batch = self.node.get_batch(number).await?;
        batch.with_context(|| format!("the full node has no batch {number}"))
    }

    /// What the sequencer knows of an envelope.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn receipt_of_sequencer(&self, id: B256) -> Result<Option<Receipt>> {
        Ok(self.sequencer.get_receipt(id).await?)
    }

    /// What the full node knows of an envelope.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn receipt(&self, id: B256) -> Result<Option<Receipt>> {
        Ok(self.node.get_receipt(id).await?)
    }

    /// Waits until the full node has executed an envelope, and its one transaction stands in a block.
    ///
    /// # Errors
    /// When something else becomes of it, or nothing.
    pub async fn executed(&self, id: B256) -> Result<Receipt> {
        let receipt = until(&format!("envelope {id} to be executed"), async || {
            let receipt = self.receipt(id).await?;
            Ok(receipt.filter(|receipt| blindfold_client::wallet::is_final(receipt.state)))
        })
        .await?;
        let included =
            |receipt: &Receipt| receipt.transactions.iter().flatten().all(|transaction| transaction.included);
        if receipt.state != EnvelopeState::Executed || !included(&receipt) {
            bail!("envelope {id}: expected executed with its transaction, seen {receipt:?}");
        }
        Ok(receipt)
    }

    /// Has user `index` send a transfer, and waits until it is executed.
    ///
    /// # Errors
    /// As [`Arena::executed`].
    pub async fn transfer(&mut self, index: usize) -> Result<(Envelope, Receipt)> {
        let (envelope, _) = self.users[index].send().await?;
        let receipt = self.executed(envelope.id()).await?;
        Ok((envelope, receipt))
    }

    /// A member's interface.
    ///
    /// # Errors
    /// For a member that there is none of.
    pub fn member(&self, member: u16) -> Result<HttpClient> {
        let (port, _) = self.devnet.ports.members.get(usize::from(member) - 1).context("a member")?;
        Ok(http_client(&http(*port), &ClientConfig::default())?)
    }

    /// What the admin server at this port says of its role's readiness: the reason of each condition that does not hold.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn unready(&self, admin: u16) -> Result<BTreeMap<String, String>> {
        let answer = crate::http_client().get(format!("{}/readyz", http(admin))).send().await?;
        let mut answer: Value = serde_json::from_str(&answer.text().await?)?;
        match answer["reasons"].take() {
            Value::Null => Ok(BTreeMap::new()),
            reasons => Ok(serde_json::from_value(reasons)?),
        }
    }

    /// How many second headers a member has refused.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn second_headers(&self, member: u16) -> Result<u64> {
        Ok(CommitteeApiClient::get_status(&self.member(member)?).await?.second_headers_refused)
    }

    /// A wallet for the account, with another committee's key.
    ///
    /// # Errors
    /// When the committee is not on L1.
    pub async fn with_committee_of(&self, index: usize, number: u64) -> Result<Sender> {
        let committee = CommitteeKey::fetch(&self.devnet.l1, number, None).await?;
        let mut sender = sender(&self.devnet, &self.relay, index, committee).await?;
        sender.nonce = self.users[index].nonce;
        Ok(sender)
    }
}

async fn sender(devnet: &Devnet, relay: &Relay, index: usize, committee: CommitteeKey) -> Result<Sender> {
    let role = if index == SPOILER { "spoiler".to_owned() } else { format!("user-{index}") };
    let endpoints =
        WalletEndpoints { node: http(devnet.ports.full_node.0), sequencers: relay.http_url(&role).into() };
    let l1 = Arc::new(devnet.l1.clone());
    Sender::new(account_key(index), Arc::clone(&devnet.chain), l1, committee, &endpoints).await
}

#[cfg(test)]
mod tests {
    use blindfold_rpc::RpcError;

    use super::*;

    fn unreachable() -> L1Error {
        L1Error::Unreachable { method: "eth_call".to_owned(), reason: "refused".to_owned() }
    }

    #[tokio::test]
    async fn who_does_not_answer_is_asked_again() {
        let mut asked = 0;
        let answer = until("an answer", async || {
            asked += 1;
            if asked < 3 { Err(unreachable()).context("somewhere") } else { Ok(Some(asked)) }
        });
        assert_eq!(answer.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_wait_in_vain_says_who_did_not_answer() {
        let answer = within::<()>(LOOK_INTERVAL, "an answer", async || Err(unreachable().into()));
        let text = format!("{:#}", answer.await.unwrap_err());
        assert!(text.contains("in vain for an answer") && text.contains("eth_call"), "{text}");
    }

    #[tokio::test]
    async fn what_is_wrong_is_wrong_at_once() {
        let reverted = L1Error::Reverted { call: "challenge", reason: "WrongRun".to_owned() };
        let refused = ReceivedError::Refused(RpcError::refused("expired", "the envelope expired"));
        for wrong in [anyhow!("expected 1, seen 2"), reverted.into(), refused.into()] {
            let (said, mut wrong) = (wrong.to_string(), Some(wrong));
            let answer = within::<()>(LOOK_INTERVAL, "an answer", async || match wrong.take() {
                Some(wrong) => Err(wrong),
                None => Ok(None),
            });
            assert_eq!(answer.await.unwrap_err().to_string(), said);
        }
    }
}
