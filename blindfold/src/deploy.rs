//! `blindfold l1` and `blindfold genesis`: what a rollup team does once before the roles start.

pub(crate) mod begun;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use alloy_primitives::{Address, B256, U256};
use anyhow::{Context, Result, bail, ensure};
use blindfold_bte::{Parameters, bls};
use blindfold_client::KeySource;
use blindfold_committee::key_file;
use blindfold_engine::Genesis;
use blindfold_l1::{
    Addresses, CommitteeSettings, DEFAULT_CLAIM_DELAY, DEFAULT_FORCED_FEE_PER_BYTE_WEI,
    DEFAULT_FORCED_GAS_PRICE_WEI, DeployConfig, L1Writer, NewEpoch, NewMember,
};
use blindfold_protocol::{
    ChainConfig, Epochs, L1Timing, MIN_SOUND_POSTING_DEADLINE, SigningKey,
    limits::{DEFAULT_BLOCK_GAS, MAX_MEMBERS},
};
use blindfold_runtime::rng;
use clap::{Args, Subcommand};

use crate::{
    address::address,
    l1_commands::{self, HandCommand, advice::advised},
    new_file::NewFile,
    roles::{L1Settings, load_chain},
    wallet::{wei, wei_u128},
};

/// Where the fees of L2 blocks go by default: the OP stack's sequencer fee vault.
pub const FEE_RECIPIENT: Address = alloy_primitives::address!("4200000000000000000000000000000000000011");

/// Bytes whose ordering fee the surcharge for malformed envelopes is by default: nodes verify a good envelope of so many
/// bytes for less than a malformed one takes beyond it (`crates/bte/examples/malformed.rs`).
const MALFORMED_SURCHARGE_BYTES: u128 = 2_048;

/// The shortest `--max-origin-age-seconds` that does not stop a chain on Ethereum again and again: twice the age that final
/// blocks have there.
const MIN_SOUND_ORIGIN_AGE_SECONDS: u32 = 1_800;

/// What a member can have at stake: 96 bits of wei.
const STAKE_LIMIT_WEI: u128 = 1 << 96;

/// `blindfold l1 …`
#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub enum L1Command {
    /// Deploy the contracts of a rollup, and write rollup.json
    Deploy(DeployArgs),
    /// Register a committee from its parameter file and its members' public files
    Register(RegisterArgs),
    /// What a person does by hand once the deployment runs
    #[command(flatten)]
    Hand(HandCommand),
}

const EXAMPLES: &str = "Examples:
  blindfold l1 deploy --l1 http://127.0.0.1:8545 --key governor.json --password-file password \\
      --chain-id 42069 --sequencer 0x… --out rollup.json
  blindfold l1 register --l1 http://127.0.0.1:8545 --key governor.json --password-file password \\
      --chain rollup.json --parameters keys/parameters.bin --last 1000000 keys/member-*.key.json
  blindfold l1 status --l1 http://127.0.0.1:8545 --chain rollup.json
  blindfold genesis --chain rollup.json --fund 0x…=100ether --out genesis.json";

#[derive(Args, Debug)]
struct AccountArgs {
    /// Your L1 node
    #[arg(long, env = "BLINDFOLD_L1")]
    l1: String,
    /// Key file of the account that pays and governs the registry (Ethereum keystore V3)
    #[arg(long, env = "BLINDFOLD_KEY")]
    key: PathBuf,
    /// File whose first line is the password
    #[arg(long, env = "BLINDFOLD_PASSWORD_FILE")]
    password_file: PathBuf,
}

impl AccountArgs {
    fn open(&self) -> Result<SigningKey> {
        let source = KeySource {
            file: self.key.clone(),
            password_file: Some(self.password_file.clone()),
            password_env: None,
        };
        Ok(source.open()?)
    }
}

/// Options of `blindfold l1 deploy`.
#[derive(Args, Debug)]
pub struct DeployArgs {
    #[command(flatten)]
    account: AccountArgs,
    /// Chain id of the rollup
    #[arg(long)]
    chain_id: u64,
    /// Address that signs headers and promises
    #[arg(long, value_parser = address)]
    sequencer: Address,
    /// Gas limit of an L2 block
    #[arg(long, default_value_t = DEFAULT_BLOCK_GAS)]
    block_gas_limit: u64,
    /// Who gets the fees of L2 blocks
    #[arg(long, default_value_t = FEE_RECIPIENT, value_parser = address)]
    fee_recipient: Address,
    /// Ordering fee at the start and at least, in wei per byte
    #[arg(long, default_value_t = 1_000_000)]
    base_fee_wei: u128,
    /// Ordering fee at the start and at least, in wei per unit of gas that an envelope reserves
    #[arg(long, default_value_t = 5_000)]
    gas_base_fee_wei: u128,
    /// Who is credited with the base parts of the ordering fees; the zero address burns them
    #[arg(long, default_value_t = Address::ZERO, value_parser = address)]
    base_fee_recipient: Address,
    /// Held per envelope until its hint is final on L1, in wei; 0 switches it off [default: the fee of 2,048 bytes]
    #[arg(long)]
    malformed_surcharge_wei: Option<u128>,
    #[command(flatten)]
    fixed: FixedArgs,
    /// Where the chain's settings go; never over another file
    #[arg(long, default_value = "rollup.json")]
    out: PathBuf,
}

impl DeployArgs {
    /// What is deployed, with everything checked that contracts or roles would refuse: afterwards it is paid for.
    fn plan(&self, l1_chain_id: u64, governor: Address) -> Result<DeployConfig> {
        let config = self.fixed.config(l1_chain_id, governor, self.sequencer)?;
        // Where the contracts will be is not known, and not what is checked.
        let somewhere = Address::repeat_byte(1);
        let addresses = Addresses {
            l1_chain_id,
            registry: somewhere,
            forced_queue: somewhere,
            inbox: somewhere,
            fee_vault: somewhere,
            hint_verifier: somewhere,
            hint_registry: somewhere,
            deposit_portal: somewhere,
            output_registry: somewhere,
            block: 1,
        };
        self.settings(&config, &addresses).validate().context("nothing was deployed")?;
        Ok(config)
    }

    /// What `rollup.json` holds of the deployment.
    fn settings(&self, config: &DeployConfig, addresses: &Addresses) -> ChainConfig {
        ChainConfig {
            chain_id: self.chain_id,
            deployment: addresses.deployment(),
            registry: addresses.registry,
            fee_vault: addresses.fee_vault,
            forced_queue: addresses.forced_queue,
            hint_registry: addresses.hint_registry,
            hint_verifier: addresses.hint_verifier,
            deposit_portal: addresses.deposit_portal,
            output_registry: addresses.output_registry,
            timing: config.timing,
            sequencer: self.sequencer,
            fee_recipient: self.fee_recipient,
            base_fee_recipient: self.base_fee_recipient,
            block_gas_limit: self.block_gas_limit,
            initial_base_fee: self.base_fee_wei,
            min_base_fee: self.base_fee_wei,
            initial_gas_base_fee: self.gas_base_fee_wei,
            min_gas_base_fee: self.gas_base_fee_wei,
            malformed_surcharge: self
                .malformed_surcharge_wei
                .unwrap_or(self.base_fee_wei.saturating_mul(MALFORMED_SURCHARGE_BYTES)),
            // Nothing happened to the contracts before they were there.
            genesis_l1_origin: addresses.block.saturating_sub(1),
        }
    }
}

/// What the contracts hold for good. Defaults count L1 blocks of 12 s.
#[derive(Args, Debug)]
#[command(next_help_heading = "Fixed in the contracts for good (deadlines in L1 blocks)")]
struct FixedArgs {
    /// Without a certified header for so long, L1 makes headers itself; in L1 blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = L1Timing::default().posting_deadline)]
    posting_deadline: u32,
    /// How long a forced item may wait before every header must hold it; in L1 blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = L1Timing::default().forced_delay)]
    forced_delay: u32,
    /// How long an accused sequencer may answer before its bond is lost; in L1 blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = L1Timing::default().answer_window)]
    answer_window: u32,
    /// Without hints on L1 for so long, anyone may declare a posted run void; in L1 blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = L1Timing::default().hint_deadline)]
    hint_deadline: u32,
    /// How long posted hints can be challenged; in L1 blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = L1Timing::default().challenge_window)]
    challenge_window: u32,
    /// How long a request waits before a fee account can leave without the rollup; in L1 blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = L1Timing::default().withdrawal_delay)]
    withdrawal_delay: u32,
    /// How long after its registration a further committee certifies: longer than --withdrawal-delay, so that who does
    /// not trust it has left; in L1 blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = CommitteeSettings::default().epoch_notice)]
    epoch_notice: u32,
    /// How far ahead of the posted head a change of epoch or rules must begin; in batch numbers
    #[arg(long, value_name = "BATCHES", default_value_t = CommitteeSettings::default().switch_lead)]
    switch_lead: u64,
    /// The fewest members that a committee may have
    #[arg(long, value_name = "N", default_value_t = CommitteeSettings::default().min_members)]
    min_members: u16,
    /// The least threshold that a committee may have
    #[arg(long, value_name = "T", default_value_t = CommitteeSettings::default().min_threshold)]
    min_threshold: u16,
    /// How long after its posting a header's fee ledger pays out; in L1 blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = DEFAULT_CLAIM_DELAY)]
    claim_delay: u32,
    /// How far a header's time may be ahead of its L1 origin's, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = L1Timing::default().max_origin_age_seconds)]
    max_origin_age_seconds: u32,
    /// What a byte of a forced item costs its sender, in wei
    #[arg(long, value_name = "WEI", default_value_t = DEFAULT_FORCED_FEE_PER_BYTE_WEI)]
    forced_fee_per_byte_wei: u128,
    /// The least price of the gas that a forced item reserves, in wei; it rises with use
    #[arg(long, value_name = "WEI", default_value_t = DEFAULT_FORCED_GAS_PRICE_WEI)]
    forced_gas_price_wei: u64,
    /// Take deposits of ether for L2 although nothing proves execution yet, so that there is no way back for them
    #[arg(long)]
    deposits_without_outlet: bool,
    /// What each member of a committee has at stake, lost for two acknowledgements of one number; nothing by default
    #[arg(long, value_name = "AMOUNT", default_value = "0wei", value_parser = wei_u128)]
    member_stake: u128,
    /// The least bond of whoever has hints open, with its unit; half of it must pay a challenge
    #[arg(long, value_name = "AMOUNT", default_value = "10ether", value_parser = wei_u128)]
    publisher_bond: u128,
    /// What a challenge of posted hints stakes, with its unit
    #[arg(long, value_name = "AMOUNT", default_value = "0.1ether", value_parser = wei_u128)]
    challenge_stake: u128,
}

impl FixedArgs {
    /// What is deployed, checked as far as the contracts would refuse it: they would one by one, paid for.
    fn config(&self, l1_chain_id: u64, governor: Address, sequencer: Address) -> Result<DeployConfig> {
        let config = DeployConfig {
            l1_chain_id,
            governor,
            sequencer,
            timing: L1Timing {
                posting_deadline: self.posting_deadline,
                forced_delay: self.forced_delay,
                answer_window: self.answer_window,
                hint_deadline: self.hint_deadline,
                challenge_window: self.challenge_window,
                withdrawal_delay: self.withdrawal_delay,
                max_origin_age_seconds: self.max_origin_age_seconds,
            },
            committees: CommitteeSettings {
                epoch_notice: self.epoch_notice,
                switch_lead: self.switch_lead,
                min_members: self.min_members,
                min_threshold: self.min_threshold,
            },
            claim_delay: self.claim_delay,
            forced_fee_per_byte_wei: self.forced_fee_per_byte_wei,
            forced_gas_price_wei: self.forced_gas_price_wei,
            deposits_without_outlet: self.deposits_without_outlet,
            member_stake_wei: self.member_stake,
            publisher_bond_wei: self.publisher_bond,
            challenge_stake_wei: self.challenge_stake,
        };
        config.timing.validate()?;
        let timing = &config.timing;
        ensure!(
            self.epoch_notice > timing.withdrawal_delay,
            "--epoch-notice must be longer than --withdrawal-delay, so that who does not trust a new committee can leave"
        );
        ensure!(
            self.claim_delay > 0
                && u64::from(timing.withdrawal_delay)
                    > u64::from(timing.posting_deadline) + u64::from(self.claim_delay),
            "--claim-delay must not be 0, and with --posting-deadline it must be below --withdrawal-delay"
        );
        ensure!(self.switch_lead > 0, "--switch-lead must not be 0");
        ensure!(
            usize::from(self.min_members) <= MAX_MEMBERS,
            "--min-members {}: no committee could be registered, since one has {MAX_MEMBERS} members at most",
            self.min_members
        );
        ensure!(
            self.member_stake < STAKE_LIMIT_WEI,
            "--member-stake must be below 2^96 wei: no contract holds more for a member"
        );
        ensure!(
            self.min_threshold > 0 && self.min_threshold <= self.min_members,
            "--min-threshold must be between 1 and --min-members"
        );
        // Half of a bond is burnt, half is the reward.
        ensure!(config.publisher_bond_wei >= 2, "--publisher-bond must be at least 2wei");
        ensure!(config.challenge_stake_wei > 0, "--challenge-stake must not be 0");
        Ok(config)
    }
}

/// What the contracts take and a chain hardly works with.
fn warnings_about(timing: &L1Timing) -> Vec<String> {
    warning_about_posting(timing).into_iter().chain(warning_about_origins(timing)).collect()
}

fn warning_about_origins(timing: &L1Timing) -> Option<String> {
    let seconds = timing.max_origin_age_seconds;
    (seconds < MIN_SOUND_ORIGIN_AGE_SECONDS).then(|| {
        format!(
            "WARNING: --max-origin-age-seconds {seconds} is too short for an L1 whose blocks are final after a quarter of an \
             hour. Each origin is a final block, and without one that is young enough nothing is sealed: the chain would stand \
             still whenever L1 finalizes a little later, or for good. The limit is fixed for good; unless this is an L1 of \
             your own for tests, deploy anew with --max-origin-age-seconds {MIN_SOUND_ORIGIN_AGE_SECONDS} or more (default: \
             {default})",
            default = L1Timing::default().max_origin_age_seconds,
        )
    })
}

fn warning_about_posting(timing: &L1Timing) -> Option<String> {
    let blocks = timing.posting_deadline;
    (blocks < MIN_SOUND_POSTING_DEADLINE).then(|| {
        format!(
            "WARNING: --posting-deadline {blocks} is too short for an L1 whose blocks are final after 64 or more. Members \
             give no shares of a batch that is not posted {half} L1 blocks after its origin, and each origin is a final block \
             already: batches would stay unopened whenever posting takes a little longer. The deadline is fixed for good; \
             unless this is an L1 of your own for tests, deploy anew with --posting-deadline {MIN_SOUND_POSTING_DEADLINE} or \
             more (default: {default})",
            half = blocks / 2,
            default = L1Timing::default().posting_deadline,
        )
    })
}

/// Options of `blindfold l1 register`.
#[derive(Args, Debug)]
pub struct RegisterArgs {
    #[command(flatten)]
    account: AccountArgs,
    /// The chain's settings, rollup.json
    #[arg(long, env = "BLINDFOLD_CHAIN")]
    chain: PathBuf,
    /// The committee's parameter file
    #[arg(long)]
    parameters: PathBuf,
    /// Where others can fetch it; its hash decides
    #[arg(long, default_value = "parameters.bin")]
    location: String,
    /// Last batch number of the epoch
    #[arg(long)]
    last: u64,
    /// Continue the key of this earlier epoch, with the same parameters' key and another committee's shares
    #[arg(long, value_name = "EPOCH", default_value_t = 0)]
    continues: u64,
    /// The members' public files, in any order; of key files only these are read, too
    #[arg(required = true)]
    members: Vec<PathBuf>,
}

/// Options of `blindfold genesis`.
#[derive(Args, Debug)]
pub struct GenesisArgs {
    /// The chain's settings, rollup.json
    #[arg(long, env = "BLINDFOLD_CHAIN")]
    chain: PathBuf,
    /// An account with its balance, for example 0x…=100ether. Repeatable
    #[arg(long = "fund", value_name = "ADDRESS=AMOUNT")]
    funded: Vec<String>,
    /// Where the genesis of the execution clients goes; never over another file
    #[arg(long, default_value = "genesis.json")]
    out: PathBuf,
}

/// Runs `blindfold l1 …`.
///
/// # Errors
/// Whatever L1 or a file objects to.
pub async fn run(command: L1Command) -> Result<()> {
    match command {
        L1Command::Deploy(args) => begun::run(&args, io::stdout()).await,
        L1Command::Register(args) => run_register(&args).await,
        L1Command::Hand(command) => l1_commands::run(command).await,
    }
}

async fn run_register(args: &RegisterArgs) -> Result<()> {
    let chain = load_chain(&args.chain)?;
    let epoch = new_epoch(&args.parameters, &args.members, args.last, args.location.clone())?;
    let epoch = NewEpoch { continues: args.continues, ..epoch };
    let l1 = L1Settings::new(args.account.l1.as_str()).connect(&chain).await?;
    if epoch.continues != 0 {
        check_continued(&l1.epochs().await?, &epoch)?;
    }
    let sent = L1Writer::new(l1, args.account.open()?).register_epoch(&epoch).await.map_err(advised)?;
    println!("registered in L1 block {} ({}, {} gas)", sent.block, sent.transaction, sent.gas_used);
    Ok(())
}

/// Refuses parameters of another key than that of the epoch that is continued: L1 is not told the new ones' key, and nobody
/// could open what is encrypted to the old one.
fn check_continued(registered: &Epochs, epoch: &NewEpoch) -> Result<()> {
    let number = epoch.continues;
    let continued = registered.as_slice().iter().find(|registered| registered.epoch == number);
    let continued = continued
        .with_context(|| format!("--continues {number}: epoch {number} is in no final block of L1 yet"))?;
    let (there, here) = (continued.encryption_key_hash, B256::from(epoch.encryption_key.hash()));
    ensure!(
        there == here,
        "--continues {number}: that epoch's key is {there}, the parameters' is {here}. They have to share out the same key; \
         without --continues they bring their own"
    );
    Ok(())
}

/// What L1 registers of a committee: from its parameter file, checked, and its members' public files or key files.
///
/// # Errors
/// Parameters that fail their checks; files that are not exactly of the members 1..n of these parameters.
pub fn new_epoch(parameters: &Path, members: &[PathBuf], last: u64, location: String) -> Result<NewEpoch> {
    let bytes = fs::read(parameters).with_context(|| format!("{}", parameters.display()))?;
    let parameters = Parameters::decode(&bytes).with_context(|| format!("{}", parameters.display()))?;
    parameters.check(&mut rng()).context("the parameters fail their checks: do not use them")?;
    let parameters_hash = B256::from(parameters.hash());
    let mut public = Vec::with_capacity(members.len());
    for path in members {
        let part = key_file::read_public(path)
            .and_then(|keys| key_file::public_of(keys, Some(parameters_hash)))
            .with_context(|| format!("{}", path.display()))?;
        public.push(part);
    }
    public.sort_by_key(|part| part.member);
    let expected: Vec<u16> = (1..=parameters.members()).collect();
    let given: Vec<u16> = public.iter().map(|part| part.member).collect();
    if given != expected {
        bail!("files of members {given:?} were given, the parameters have members {expected:?}");
    }
    let members = public
        .iter()
        .map(|part| {
            Ok(NewMember {
                key: bls::PublicKey::from_bytes(&part.bls_public_key)?,
                possession: bls::Signature::from_bytes(&part.proof_of_possession)?,
            })
        })
        .collect::<Result<_>>()?;
    // A parameter file has at least h_1.
    let h1 = parameters.h(1).context("the parameters have no h_1")?;
    Ok(NewEpoch {
        last,
        continues: 0,
        h1: bls::PublicKey::from_bytes(&h1)?,
        max_batch: u32::try_from(parameters.max_batch())?,
        threshold: parameters.threshold(),
        parameters_hash,
        encryption_key: parameters.encryption_key(),
        parameters_location: location,
        members,
    })
}

/// Runs `blindfold genesis`.
///
/// # Errors
/// A file or an amount that cannot be used.
pub fn run_genesis(args: &GenesisArgs) -> Result<()> {
    let chain = load_chain(&args.chain)?;
    let alloc = args.funded.iter().map(|entry| funded(entry)).collect::<Result<Vec<_>>>()?;
    let genesis = Genesis::new(chain.chain_id, chain.block_gas_limit, alloc);
    NewFile::create(&args.out)?.write(&serde_json::to_vec_pretty(&genesis)?)?;
    println!("{}", args.out.display());
    Ok(())
}

fn funded(entry: &str) -> Result<(Address, U256)> {
    let (whose, amount) =
        entry.split_once('=').with_context(|| format!("`--fund {entry}`: expected ADDRESS=AMOUNT"))?;
    Ok((address(whose)?, wei(amount)?))
}

#[cfg(test)]
mod tests {
    use blindfold_committee::key_file::KeyFileCost;
    use blindfold_protocol::Epoch;

    use super::*;
    use crate::dealer::{Deal, deal};

    fn dealt(dir: &Path) -> crate::dealer::Dealt {
        let cost = KeyFileCost { memory_kib: 8, iterations: 1, lanes: 1 };
        deal(&Deal { max_batch: 2, members: 4, threshold: 3, out: dir, password: "p", cost }).unwrap()
    }

    #[derive(clap::Parser)]
    struct Fixed {
        #[command(flatten)]
        args: FixedArgs,
    }

    fn fixed(flags: &[&str]) -> Result<DeployConfig> {
        let Fixed { args } = clap::Parser::try_parse_from([&["deploy"], flags].concat())?;
        args.config(1, Address::repeat_byte(1), Address::repeat_byte(2))
    }

    #[test]
    fn without_flags_the_contracts_get_their_defaults() {
        let expected = DeployConfig::new(1, Address::repeat_byte(1), Address::repeat_byte(2));
        assert_eq!(fixed(&[]).unwrap(), expected);
    }

    #[test]
    fn every_deadline_fee_bond_and_stake_has_its_flag() {
        let names = [
            "--posting-deadline=101",
            "--forced-delay=12",
            "--answer-window=13",
            "--hint-deadline=54",
            "--challenge-window=25",
            "--withdrawal-delay=136",
            "--epoch-notice=137",
            "--switch-lead=17",
            "--min-members=7",
            "--min-threshold=5",
            "--claim-delay=34",
            "--max-origin-age-seconds=900",
            "--forced-fee-per-byte-wei=7",
            "--forced-gas-price-wei=8",
            "--deposits-without-outlet",
            "--member-stake=3gwei",
            "--publisher-bond=2ether",
            "--challenge-stake=5gwei",
        ];
        let config = fixed(&names).unwrap();
        let timing = L1Timing {
            posting_deadline: 101,
            forced_delay: 12,
            answer_window: 13,
            hint_deadline: 54,
            challenge_window: 25,
            withdrawal_delay: 136,
            max_origin_age_seconds: 900,
        };
        assert_eq!(config.timing, timing);
        let committees =
            CommitteeSettings { epoch_notice: 137, switch_lead: 17, min_members: 7, min_threshold: 5 };
        assert_eq!((config.committees, config.claim_delay), (committees, 34));
        assert_eq!(config.member_stake_wei, 3_000_000_000);
        assert_eq!((config.forced_gas_price_wei, config.deposits_without_outlet), (8, true));
        let amounts = (config.forced_fee_per_byte_wei, config.publisher_bond_wei, config.challenge_stake_wei);
        assert_eq!(amounts, (7, 2_000_000_000_000_000_000, 5_000_000_000));
    }

    #[test]
    fn a_posting_deadline_that_is_too_short_for_shares_is_warned_of() {
        let warning = |blocks| {
            let flags = [format!("--posting-deadline={blocks}"), "--forced-delay=10".to_owned()];
            warnings_about(&fixed(&[&flags[0], &flags[1]]).unwrap().timing).pop()
        };
        let message = warning(MIN_SOUND_POSTING_DEADLINE - 1).unwrap();
        assert!(message.contains("--posting-deadline 399") && message.contains("199 L1 blocks"), "{message}");
        assert!(message.contains("deploy anew with --posting-deadline 400"), "{message}");
        assert_eq!(warning(MIN_SOUND_POSTING_DEADLINE), None);
        assert!(warnings_about(&fixed(&[]).unwrap().timing).is_empty());
    }

    #[test]
    fn origins_that_are_never_young_enough_are_warned_of() {
        let warnings = |seconds: u32| {
            let flag = format!("--max-origin-age-seconds={seconds}");
            warnings_about(&fixed(&[&flag]).unwrap().timing)
        };
        let messages = warnings(MIN_SOUND_ORIGIN_AGE_SECONDS - 1);
        assert!(
            messages.iter().any(|message| message.contains("--max-origin-age-seconds 1799")),
            "{messages:?}"
        );
        assert!(warnings(MIN_SOUND_ORIGIN_AGE_SECONDS).is_empty());
    }

    #[test]
    fn what_the_contracts_would_refuse_is_refused_before_anything_is_paid() {
        for flag in [
            "--answer-window=0",
            "--epoch-notice=36000",
            "--claim-delay=0",
            "--claim-delay=21600",
            "--switch-lead=0",
            "--min-threshold=0",
            "--min-threshold=5",
            "--publisher-bond=1wei",
            "--challenge-stake=0wei",
            "--publisher-bond=4",
            "--forced-delay=x",
            "--min-members=65",
            "--member-stake=79228162514264337593543950336wei",
        ] {
            assert!(fixed(&[flag]).is_err(), "{flag}");
        }
    }

    #[derive(clap::Parser)]
    struct Deployed {
        #[command(flatten)]
        args: DeployArgs,
    }

    fn planned(l1_chain_id: u64, flags: &[&str]) -> Result<DeployConfig> {
        let given = ["deploy", "--l1=x", "--key=k", "--password-file=p"];
        let Deployed { args } = clap::Parser::try_parse_from([&given, flags].concat())?;
        args.plan(l1_chain_id, Address::repeat_byte(1))
    }

    #[test]
    fn what_no_chain_can_run_with_is_refused_before_anything_is_paid() {
        let (chain, sequencer) = ("--chain-id=5", "--sequencer=0x4200000000000000000000000000000000000012");
        assert_eq!(planned(1, &[chain, sequencer]).unwrap().l1_chain_id, 1);
        let zero = "0x0000000000000000000000000000000000000000";
        for (l1_chain_id, flags) in [
            (5, vec![chain, sequencer]),
            (1, vec!["--chain-id=0", sequencer]),
            (1, vec![chain, &format!("--sequencer={zero}")]),
            (1, vec![chain, sequencer, &format!("--fee-recipient={zero}")]),
            (1, vec![chain, sequencer, "--block-gas-limit=30000000"]),
            (1, vec![chain, sequencer, "--base-fee-wei=0"]),
            (1, vec![chain, sequencer, "--gas-base-fee-wei=0"]),
        ] {
            let refused = planned(l1_chain_id, &flags).map_err(|error| format!("{error:#}")).unwrap_err();
            assert!(refused.contains("nothing was deployed: "), "{flags:?}: {refused}");
        }
    }

    #[test]
    fn a_committee_is_read_from_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let dealt = dealt(dir.path());
        let mut files: Vec<PathBuf> = dealt.members.iter().map(|(path, _)| path.clone()).collect();
        files.reverse();
        // The public file says as much as the key file.
        files[0] = key_file::public_path(&files[0]);
        let epoch = new_epoch(&dealt.parameters, &files, 100, "here".to_owned()).unwrap();
        assert_eq!((epoch.max_batch, epoch.threshold, epoch.members.len()), (2, 3, 4));
        assert_eq!(epoch.parameters_hash, dealt.parameters_hash);
        assert_eq!(
            epoch.members[0].key.to_bytes(),
            dealt.members[0].1.bls_public_key,
            "in order of the members"
        );
    }

    #[test]
    fn only_the_key_that_an_epoch_has_is_continued() {
        let dir = tempfile::tempdir().unwrap();
        let dealt = dealt(dir.path());
        let files: Vec<PathBuf> = dealt.members.iter().map(|(path, _)| path.clone()).collect();
        let new = new_epoch(&dealt.parameters, &files, 100, "here".to_owned()).unwrap();
        let registered = |encryption_key_hash| {
            let members = new.members.iter().map(|member| member.key).collect();
            let epoch = Epoch {
                epoch: 1,
                first: 1,
                last: 50,
                counts_from: 0,
                continues: 0,
                parameters_hash: B256::ZERO,
                encryption_key_hash,
                max_batch: new.max_batch,
                threshold: new.threshold,
                members,
            };
            Epochs::new(vec![epoch]).unwrap()
        };
        let own = B256::from(new.encryption_key.hash());
        let continued = |continues| NewEpoch { continues, ..new.clone() };
        check_continued(&registered(own), &continued(1)).unwrap();
        let other =
            check_continued(&registered(B256::repeat_byte(7)), &continued(1)).unwrap_err().to_string();
        assert!(other.contains(&own.to_string()) && other.contains("the same key"), "{other}");
        let none = check_continued(&registered(own), &continued(2)).unwrap_err().to_string();
        assert!(none.contains("epoch 2 is in no final block"), "{none}");
    }

    #[test]
    fn missing_doubled_and_foreign_members_are_refused() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (ours, theirs) = (dealt(dir.path()), dealt(other.path()));
        let files: Vec<PathBuf> = ours.members.iter().map(|(path, _)| path.clone()).collect();
        let refused = |files: &[PathBuf]| {
            format!("{:#}", new_epoch(&ours.parameters, files, 100, String::new()).unwrap_err())
        };
        assert!(refused(&files[..3]).contains("were given"));
        assert!(refused(&[&files[..3], &files[..1]].concat()).contains("were given"));
        let foreign = refused(&[&files[..3], &[theirs.members[3].0.clone()]].concat());
        assert!(
            foreign.contains("has no key of parameters") && foreign.contains("member-4.key"),
            "{foreign}"
        );
    }

    #[test]
    fn a_genesis_is_written_over_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rollup.json");
        let settings = serde_json::to_vec_pretty(&crate::test_chain::chain()).unwrap();
        fs::write(&path, &settings).unwrap();
        let mut args = GenesisArgs { chain: path.clone(), funded: Vec::new(), out: path.clone() };
        let refused = run_genesis(&args).unwrap_err().to_string();
        assert!(refused.contains("exists already"), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), settings);
        args.out = dir.path().join("genesis.json");
        run_genesis(&args).unwrap();
        assert!(run_genesis(&args).is_err(), "nor over an earlier genesis");
    }

    #[test]
    fn funding_names_address_and_amount() {
        let (address, amount) = funded("0x4200000000000000000000000000000000000011=2ether").unwrap();
        assert_eq!((address, amount), (FEE_RECIPIENT, U256::from(2 * 10u128.pow(18))));
        let mistyped = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD=1ether";
        for bad in ["", mistyped, "0x42", "0x42=1ether", "0x4200000000000000000000000000000000000011=1"] {
            assert!(funded(bad).is_err(), "{bad}");
        }
    }
}
