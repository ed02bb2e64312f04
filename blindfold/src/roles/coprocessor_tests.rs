//! Which keys a coprocessor starts with.

use std::fs;

use alloy_primitives::{Address, B256};
use blindfold_client::confidential::provers::Pinned;
use blindfold_confidential::Ring;
use tempfile::TempDir;

use super::*;
use crate::{setup::made, test_chain::chain};

/// Keys over a small ring are quick to make. A deployment pins their hashes; whose they are it does not look at.
fn ring() -> Ring {
    Ring::new(16, Ring::BALANCE.modulus()).unwrap()
}

/// A folder with everything that starting needs up to L1, where nobody listens.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        fs::write(files.0.path().join("rollup.json"), serde_json::to_vec(&chain()).unwrap()).unwrap();
        files
    }

    fn keys(&self) -> PathBuf {
        self.0.path().join("keys")
    }

    /// Starts a coprocessor of a deployment with these keys; why it did not start.
    async fn start(&self, keys: Pinned, more: &str) -> String {
        let parties = (Address::repeat_byte(1), Address::repeat_byte(2));
        let mut deployment = made(parties, 1, Vec::new(), &[3; 32]).unwrap();
        deployment.keys = keys;
        let dir = self.0.path().display();
        fs::write(format!("{dir}/confidential.json"), serde_json::to_vec(&deployment).unwrap()).unwrap();
        let text = format!(
            "chain = '{dir}/rollup.json'\ndeployment = '{dir}/confidential.json'\nkeys_dir = '{dir}/keys'\n\
             parameters = []\ndata_dir = '{dir}/data'\n{more}\n\
             [l1]\nurl = 'http://127.0.0.1:1'\n\
             [coprocessor]\nrpc_addr = '127.0.0.1:0'\nadmin_addr = '127.0.0.1:0'\nnode_url = 'http://127.0.0.1:1'\n"
        );
        let settings: CoprocessorSettings = toml::from_str(&text).unwrap();
        format!("{:#}", settings.start(false).await.err().expect("it is refused"))
    }
}

#[tokio::test]
async fn development_keys_need_the_setting_that_names_them_insecure() {
    let files = Files::new();
    let pinned = provers::development(&files.keys(), ring(), &[7; 32], &mut |_| ()).unwrap();
    let refused = files.start(pinned.clone(), "").await;
    assert!(
        refused.contains("development key") && refused.contains("insecure_development_setup"),
        "{refused}"
    );
    let refused = files.start(pinned.clone(), "insecure_development_setup = false").await;
    assert!(refused.contains("development key"), "{refused}");
    let insecure = "insecure_development_setup = true";
    let started = files.start(pinned.clone(), insecure).await;
    assert!(started.starts_with("l1.url"), "the next thing that is missing: {started}");

    // Other keys than the deployment pins.
    let mut others = pinned;
    if let Some(hashes) = others.get_mut("refresh") {
        hashes.verifying = B256::repeat_byte(1);
    }
    let refused = files.start(others, insecure).await;
    assert!(refused.contains("refresh.verifying has hash"), "{refused}");
}
