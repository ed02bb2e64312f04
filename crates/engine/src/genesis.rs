//! The genesis block of a chain.

use alloy_primitives::{Address, U256};
use serde_json::{Value, json};

/// Rules and system accounts of every Blindfold chain; chain id, gas limit and balances are filled in.
const TEMPLATE: &str = include_str!("../genesis.json");

/// Genesis files for the execution client.
pub struct Genesis;

impl Genesis {
    /// The genesis of chain `chain_id` with `gas_limit` and these balances in wei.
    /// An address named twice gets the sum; a system account keeps its code and storage.
    #[expect(
        clippy::new_ret_no_self,
        reason = "a genesis is a JSON document; nothing else needs a type for it"
    )]
    pub fn new(chain_id: u64, gas_limit: u64, alloc: Vec<(Address, U256)>) -> Value {
        let mut genesis: Value =
            serde_json::from_str(TEMPLATE).expect("the template is part of the program and tested");
        genesis["config"]["chainId"] = json!(chain_id);
        genesis["gasLimit"] = json!(format!("{gas_limit:#x}"));
        for (address, balance) in alloc {
            let account = &mut genesis["alloc"][format!("{address:#x}")];
            let before = account["balance"].as_str().and_then(|text| text.parse::<U256>().ok());
            let balance = before.unwrap_or_default().saturating_add(balance);
            account["balance"] = json!(format!("{balance:#x}"));
        }
        genesis
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address;

    use super::*;
    use crate::L1_BLOCK_PREDEPLOY;

    #[test]
    fn fills_the_template() {
        let payer = address!("00000000000000000000000000000000000000aa");
        let genesis = Genesis::new(
            77,
            200_000_000,
            vec![(payer, U256::from(5)), (payer, U256::from(6)), (L1_BLOCK_PREDEPLOY, U256::from(1))],
        );
        assert_eq!(genesis["config"]["chainId"], json!(77));
        assert_eq!(genesis["gasLimit"], json!("0xbebc200"));
        assert_eq!(genesis["alloc"][format!("{payer:#x}")], json!({"balance": "0xb"}));
        let system = &genesis["alloc"][format!("{L1_BLOCK_PREDEPLOY:#x}")];
        assert_eq!(system["balance"], json!("0x1"));
        assert_eq!(system["code"], json!("0x00"));
    }

    #[test]
    fn nobody_is_rich_by_default() {
        let genesis = Genesis::new(1, 30_000_000, Vec::new());
        for (address, account) in genesis["alloc"].as_object().unwrap() {
            assert_eq!(account["balance"], json!("0x0"), "{address}");
        }
    }
}
