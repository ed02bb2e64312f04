//! `blindfold l1 deploy`: nothing that is paid for is lost, wherever it breaks off.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::Path,
};

use alloy_primitives::{Address, B256, U64};
use anyhow::{Context, Result, ensure};
use blindfold_client::node::Node;
use blindfold_l1::{BrokenOff, DeployConfig, DeployFunds, DeployPlan, L1Error};
use blindfold_protocol::{ChainConfig, SigningKey};
use serde::{Deserialize, Serialize};

use super::{DeployArgs, warnings_about};
use crate::{
    new_file::{self, write_whole},
    wallet::ether,
};

/// What the file is called, behind the name of the settings' file, that holds a deployment until it is complete.
const BEGUN_ENDING: &str = ".deploying";

/// Runs `blindfold l1 deploy`.
pub(super) async fn run(args: &DeployArgs, mut out: impl Write) -> Result<()> {
    let chain = deployed(args, &args.account.open()?).await?;
    // The file holds it: what cannot be printed is not lost.
    let _ = writeln!(out, "{chain}");
    let _ = writeln!(io::stderr(), "written to {}; now register a committee", args.out.display());
    Ok(())
}

/// A deployment that was begun, in a file beside that of the settings until these are written and all contracts are final: it
/// says where the contracts will be before the first one is paid for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Begun {
    /// Who deploys, and the nonce of its first transaction. The addresses follow from both.
    deployer: Address,
    nonce: u64,
    /// The first L1 block that can hold a contract.
    block: u64,
    /// The hash of all that is sent.
    code_hash: B256,
    /// The chain's settings that the deployment makes.
    chain: ChainConfig,
}

impl Begun {
    /// What the file says; `None` without one.
    fn read(path: &Path) -> Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.with_context(|| format!("{}", path.display()))?,
        };
        let begun = serde_json::from_slice(&bytes)
            .with_context(|| format!("{} is no deployment that was begun: move it away", path.display()))?;
        Ok(Some(begun))
    }

    /// The same deployment, to be continued.
    fn plan(&self, args: &DeployArgs, config: &DeployConfig, path: &Path) -> Result<DeployPlan> {
        let plan = DeployPlan::again(config.governor, self.nonce, self.block, config)?;
        let chain = args.settings(config, plan.addresses());
        ensure!(
            self.deployer == config.governor && self.code_hash == plan.code_hash() && self.chain == chain,
            "{} holds a deployment by {} that was begun with another key, other flags or another version of this program: \
             give the same ones to continue it. To begin anew, move that file away, but only when none of its transactions \
             waits for a block; what was paid is lost then",
            path.display(),
            self.deployer
        );
        Ok(plan)
    }

    /// Refuses what cannot have begun on this L1: the chain would count deposits from a block on that it does not have.
    async fn check_block(&self, node: &Node, path: &Path) -> Result<()> {
        let newest: U64 = serde_json::from_value(node.call("eth_blockNumber", &[]).await?)?;
        let newest = newest.to::<u64>();
        ensure!(
            self.block <= newest.saturating_add(1),
            "{} holds a deployment that began at block {}, and L1's newest block is {newest}: use an L1 node that has caught \
             up. If this is another L1, move that file away",
            path.display(),
            self.block
        );
        Ok(())
    }
}

/// Deploys, or continues what was begun. Gives the settings, which are written by then.
async fn deployed(args: &DeployArgs, key: &SigningKey) -> Result<String> {
    let path = new_file::beside(&args.out, BEGUN_ENDING);
    let begun = Begun::read(&path)?;
    if begun.is_none() && args.out.symlink_metadata().is_ok() {
        return Err(new_file::exists(&args.out));
    }
    let (url, deployer) = (&args.account.l1, key.address());
    let node = Node::new(url)?;
    let config = args.plan(node.chain_id().await?, deployer)?;
    for warning in warnings_about(&config.timing) {
        eprintln!("{warning}");
    }
    let plan = match &begun {
        Some(begun) => {
            begun.check_block(&node, &path).await?;
            begun.plan(args, &config, &path)?
        }
        None => DeployPlan::new(url, deployer, &config).await?,
    };
    let chain = args.settings(&config, plan.addresses());
    let settings = serde_json::to_string_pretty(&chain)?;
    let is_written = begun.is_some() && is_written(&args.out, &settings, &path)?;
    let DeployFunds { needed, balance } = plan.funds(url).await?;
    ensure!(
        balance >= needed,
        "{deployer} has {}, and deploying may take {} at L1's present prices: send it ether, then give the same command again",
        ether(balance),
        ether(needed)
    );
    if begun.is_none() {
        let (nonce, block, code_hash) = (plan.nonce(), plan.addresses().block, plan.code_hash());
        let begun = Begun { deployer, nonce, block, code_hash, chain };
        write_whole(&path, &serde_json::to_vec_pretty(&begun)?)?;
        eprintln!("deploying the contracts from {deployer}");
    } else {
        eprintln!("continuing the deployment by {deployer} that {} holds", path.display());
    }
    let is_final = match plan.carry_out(url, key).await {
        Ok(is_final) => is_final,
        Err(broken_off) => {
            // What an earlier run began may have transactions that this endpoint does not know.
            let is_new = begun.is_none() && !broken_off.has_sent;
            if is_new && !broken_off.error.is_transient() && plan.is_untouched(url).await.unwrap_or(false) {
                fs::remove_file(&path).with_context(|| format!("{}", path.display()))?;
                return Err(anyhow::Error::new(broken_off.error).context("nothing was sent"));
            }
            let advice = advice(&broken_off, &path, &deployer);
            return Err(anyhow::Error::new(broken_off.error).context(advice));
        }
    };
    if !is_written {
        write_whole(&args.out, settings.as_bytes())
            .with_context(|| format!("the contracts stand, and {} holds the settings", path.display()))?;
    }
    if is_final {
        // The settings are written: what stays says the same.
        let _ = fs::remove_file(&path);
    } else {
        eprintln!(
            "L1 may still drop a contract: {} stays until all of them are final, some 15 minutes on Ethereum. The same command \
             then removes it, or brings up again what is missing; send nothing else from {deployer} until then",
            path.display()
        );
    }
    Ok(settings)
}

/// Whether the settings of a deployment that was begun are written already. An empty file is what a crash left of them.
fn is_written(out: &Path, settings: &str, begun: &Path) -> Result<bool> {
    let there = match fs::read(out) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        there => there.with_context(|| format!("{}", out.display()))?,
    };
    if there.is_empty() {
        fs::remove_file(out).with_context(|| format!("{}", out.display()))?;
        return Ok(false);
    }
    ensure!(
        there == settings.as_bytes(),
        "{} is not of the deployment that {} holds: move it away, then give the same command again to continue. With another \
         --out a second deployment would begin",
        out.display(),
        begun.display()
    );
    Ok(true)
}

/// What to do about a deployment that is not complete.
fn advice(broken_off: &BrokenOff, begun: &Path, deployer: &Address) -> String {
    let begun = begun.display();
    match (is_over(&broken_off.error), broken_off.is_final) {
        (true, true) => format!(
            "the deployment in {begun} can never be complete: move that file away to begin anew, when nothing of it waits for \
             a block; what was paid is lost"
        ),
        (true, false) => format!(
            "the deployment in {begun} cannot be completed unless L1 drops a block, or this was the word of a server that lags: \
             give the same command again when what L1 shows now is final, after some 15 minutes on Ethereum, and send \
             nothing else from {deployer} until then"
        ),
        (false, _) => format!(
            "the deployment is not complete. {begun} holds where its contracts are and will be: give the same command again to \
             continue it, and send nothing else from {deployer} until then"
        ),
    }
}

/// Whether something else has an address that the deployment needs.
fn is_over(error: &L1Error) -> bool {
    matches!(
        error,
        L1Error::NonceUsed { .. }
            | L1Error::OtherContract { .. }
            | L1Error::OtherDeployed { .. }
            | L1Error::OtherDeployment { .. }
            | L1Error::OtherSetting { .. }
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use blindfold_client::keys;
    use blindfold_l1::{AnvilConfig, ManagedAnvil, dev_key};

    use super::*;
    use crate::roles::{L1Settings, load_chain};

    #[derive(clap::Parser)]
    struct Deployed {
        #[command(flatten)]
        args: DeployArgs,
    }

    /// More blocks than it takes anvil to call one final.
    const FINALITY: u64 = 4;

    /// Whatever is printed is lost.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(ErrorKind::StorageFull.into())
        }
    }

    async fn anvil() -> ManagedAnvil {
        let contracts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contracts");
        let config = AnvilConfig::installed(&contracts).expect("scripts/contracts setup installs anvil");
        ManagedAnvil::spawn(&config).await.unwrap()
    }

    /// `l1 deploy` with anvil's first account into `dir`.
    fn deploy_args(anvil: &ManagedAnvil, dir: &Path, flags: &[&str]) -> DeployArgs {
        let at = |name: &str| dir.join(name).display().to_string();
        if !dir.join("key.json").exists() {
            fs::write(dir.join("password"), "p").unwrap();
            keys::store(&dev_key(0).unwrap(), &dir.join("key.json"), "p").unwrap();
        }
        let given = [
            "deploy".to_owned(),
            format!("--l1={}", anvil.url()),
            format!("--key={}", at("key.json")),
            format!("--password-file={}", at("password")),
            format!("--out={}", at("rollup.json")),
            "--chain-id=5".to_owned(),
            "--sequencer=0x4200000000000000000000000000000000000012".to_owned(),
        ];
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        let Deployed { args } = clap::Parser::try_parse_from(given.into_iter().chain(flags)).unwrap();
        args
    }

    /// A deployment by anvil's first account, whose key and settings are in `dir`.
    pub(crate) async fn deployed_in(dir: &Path) -> ManagedAnvil {
        let anvil = anvil().await;
        run(&deploy_args(&anvil, dir, &[]), Full).await.unwrap();
        anvil.mine(FINALITY).await.unwrap();
        anvil
    }

    /// How many transactions that account sent.
    pub(crate) async fn sent(anvil: &ManagedAnvil, block: &str) -> serde_json::Value {
        let account = dev_key(0).unwrap().address();
        anvil.call("eth_getTransactionCount", serde_json::json!([account, block])).await.unwrap()
    }

    #[tokio::test]
    async fn what_was_deployed_is_written_before_it_is_printed() {
        let (anvil, dir) = (anvil().await, tempfile::tempdir().unwrap());
        let args = deploy_args(&anvil, dir.path(), &[]);
        run(&args, Full).await.unwrap();
        let chain = load_chain(&args.out).unwrap();
        L1Settings::new(anvil.url()).connect(&chain).await.unwrap();
        assert_eq!(sent(&anvil, "latest").await, "0x9");
        let begun = dir.path().join("rollup.json.deploying");
        assert!(begun.exists(), "nothing is final yet");
        anvil.mine(FINALITY).await.unwrap();
        run(&args, Full).await.unwrap();
        assert_eq!(sent(&anvil, "latest").await, "0x9", "nothing was paid for twice");
        assert!(!begun.exists());
        let again = run(&args, Full).await.unwrap_err().to_string();
        assert!(again.contains("rollup.json exists already"), "{again}");
    }

    #[tokio::test]
    async fn what_l1_drops_before_it_is_final_is_deployed_again_at_the_same_place() {
        let (anvil, dir) = (anvil().await, tempfile::tempdir().unwrap());
        let args = deploy_args(&anvil, dir.path(), &[]);
        let before = anvil.call("evm_snapshot", serde_json::json!([])).await.unwrap();
        run(&args, Full).await.unwrap();
        let settings = fs::read(&args.out).unwrap();
        anvil.call("evm_revert", serde_json::json!([before])).await.unwrap();
        assert_eq!(sent(&anvil, "latest").await, "0x0");
        run(&args, Full).await.unwrap();
        assert_eq!(sent(&anvil, "latest").await, "0x9");
        assert_eq!(fs::read(&args.out).unwrap(), settings);
        L1Settings::new(anvil.url()).connect(&load_chain(&args.out).unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn a_deployment_that_was_begun_is_not_begun_anew_for_what_is_in_the_file_of_its_settings() {
        let (anvil, dir) = (anvil().await, tempfile::tempdir().unwrap());
        let args = deploy_args(&anvil, dir.path(), &[]);
        run(&args, Full).await.unwrap();
        // What a crash leaves where the file system has no links.
        fs::write(&args.out, "").unwrap();
        run(&args, Full).await.unwrap();
        assert_eq!(sent(&anvil, "latest").await, "0x9", "nothing was paid for twice");
        load_chain(&args.out).unwrap();
        fs::write(&args.out, "{}").unwrap();
        let refused = run(&args, Full).await.unwrap_err().to_string();
        assert!(refused.contains("rollup.json.deploying holds: move it away"), "{refused}");
        assert!(!refused.contains("name another file"), "{refused}");
    }

    #[test]
    fn a_deployment_is_over_only_by_what_is_final() {
        let (begun, deployer) = (Path::new("rollup.json.deploying"), Address::repeat_byte(1));
        let used = L1Error::NonceUsed { name: "FeeVault", address: deployer, account: deployer, nonce: 3 };
        let broken_off = |is_final| BrokenOff { error: used.clone(), has_sent: false, is_final };
        assert!(advice(&broken_off(true), begun, &deployer).contains("never be complete"));
        let may_pass = advice(&broken_off(false), begun, &deployer);
        assert!(!may_pass.contains("never") && may_pass.contains("same command again"), "{may_pass}");
    }

    #[tokio::test]
    async fn a_deployment_that_was_cut_off_is_continued_with_the_same_flags_only() {
        let (anvil, dir) = (anvil().await, tempfile::tempdir().unwrap());
        let args = deploy_args(&anvil, dir.path(), &[]);
        anvil.call("evm_setAutomine", serde_json::json!([false])).await.unwrap();
        let first_is_out = async {
            while sent(&anvil, "pending").await != "0x1" {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            deployed = run(&args, Full) => panic!("{deployed:?}"),
            () = first_is_out => {}
        }
        let begun = Begun::read(&dir.path().join("rollup.json.deploying")).unwrap().unwrap();
        assert!(!args.out.exists());
        anvil.mine(1).await.unwrap();
        anvil.call("evm_setAutomine", serde_json::json!([true])).await.unwrap();

        let (path, written) = (dir.path().join("rollup.json.deploying"), serde_json::to_vec(&begun).unwrap());
        let ahead = Begun { block: 1_000, ..begun };
        fs::write(&path, serde_json::to_vec(&ahead).unwrap()).unwrap();
        let refused = run(&args, Full).await.unwrap_err().to_string();
        assert!(refused.contains("began at block 1000") && refused.contains("caught up"), "{refused}");
        fs::write(&path, written).unwrap();

        let other = deploy_args(&anvil, dir.path(), &["--claim-delay=9"]);
        let refused = run(&other, Full).await.unwrap_err().to_string();
        assert!(refused.contains("other flags"), "{refused}");
        run(&args, Full).await.unwrap();
        assert_eq!(*load_chain(&args.out).unwrap(), ahead.chain);
        assert_eq!(sent(&anvil, "latest").await, "0x9", "nothing was paid for twice");
    }

    #[tokio::test]
    async fn what_an_earlier_run_began_is_kept_whatever_fails_and_a_new_one_waits_for_the_account() {
        let (anvil, dir) = (anvil().await, tempfile::tempdir().unwrap());
        let (args, path) = (deploy_args(&anvil, dir.path(), &[]), dir.path().join("rollup.json.deploying"));
        let account = dev_key(0).unwrap().address();
        let config = args.plan(31_337, account).unwrap();
        let plan = DeployPlan::again(account, 0, 1, &config).unwrap();
        let (nonce, block, code_hash) = (plan.nonce(), plan.addresses().block, plan.code_hash());
        let chain = args.settings(&config, plan.addresses());
        let begun = Begun { deployer: account, nonce, block, code_hash, chain };
        // No creation fits into such a block: nothing is sent.
        anvil.call("evm_setBlockGasLimit", serde_json::json!(["0x7530"])).await.unwrap();
        anvil.mine(1).await.unwrap();
        fs::write(&path, serde_json::to_vec(&begun).unwrap()).unwrap();
        let refused = run(&args, Full).await.unwrap_err();
        assert!(format!("{refused:#}").contains("is not complete") && path.exists(), "{refused:#}");

        fs::remove_file(&path).unwrap();
        anvil.call("evm_setAutomine", serde_json::json!([false])).await.unwrap();
        let nothing = serde_json::json!([{"from": account, "to": account, "gas": "0x5208"}]);
        anvil.call("eth_sendTransaction", nothing).await.unwrap();
        let refused = run(&args, Full).await.unwrap_err().to_string();
        assert!(refused.contains("(1)") && refused.contains("wait for them"), "{refused}");
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn too_little_ether_is_told_before_anything_is_sent() {
        let (anvil, dir) = (anvil().await, tempfile::tempdir().unwrap());
        let args = deploy_args(&anvil, dir.path(), &[]);
        let some = serde_json::json!([dev_key(0).unwrap().address(), "0x470de4df820000"]);
        anvil.call("anvil_setBalance", some).await.unwrap();
        let refused = run(&args, Full).await.unwrap_err().to_string();
        assert!(refused.contains("has 0.02 ether") && refused.contains("send it ether"), "{refused}");
        assert_eq!(sent(&anvil, "latest").await, "0x0");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "the key and its password");
    }
}
