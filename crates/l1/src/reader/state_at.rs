//! L1 after one block. An endpoint may have several servers behind it: one that lags says that it does not know the block,
//! where it would show a contract as missing after its own newest one.

use alloy_eips::BlockId;
use alloy_primitives::Address;
use alloy_provider::Provider;
use alloy_sol_types::SolCall;

use crate::{
    error::L1Error,
    transport::{Rpc, failed},
};

/// What stands after a block.
#[derive(Debug)]
pub(crate) struct StateAt<'a> {
    rpc: &'a Rpc,
    pub number: u64,
}

impl<'a> StateAt<'a> {
    pub fn new(rpc: &'a Rpc, number: u64) -> Self {
        Self { rpc, number }
    }

    /// The state after L1's newest block, final or not.
    pub async fn newest(rpc: &'a Rpc) -> Result<Self, L1Error> {
        Ok(Self::new(rpc, rpc.newest().await?))
    }

    /// After the newest final block; `None` before there is one.
    pub async fn finalized(rpc: &'a Rpc) -> Result<Option<Self>, L1Error> {
        let block = rpc.block(BlockId::finalized()).await?;
        Ok(block.map(|block| Self::new(rpc, block.header.number)))
    }

    /// Whether there is a contract.
    pub async fn has_code(&self, address: Address) -> Result<bool, L1Error> {
        let code = self.rpc.provider.get_code_at(address).number(self.number).await;
        Ok(!code.map_err(failed("eth_getCode"))?.is_empty())
    }

    /// The nonce of the account's next transaction.
    pub async fn nonce(&self, account: Address) -> Result<u64, L1Error> {
        self.rpc.nonce(account, self.number).await
    }

    /// What the contract answers to a question that only its kind, or few others, can answer.
    pub async fn ask<C: SolCall>(
        &self,
        contract: &'static str,
        at: Address,
        role: &'static str,
        call: C,
    ) -> Result<C::Return, L1Error> {
        match self.rpc.view_at(role, at, &call, self.number).await {
            // What has no such function reverts, or answers nothing that could be meant.
            Err(L1Error::Reverted { .. } | L1Error::Undecodable { .. }) => {
                Err(L1Error::OtherContract { name: contract, address: at, role })
            }
            answer => answer,
        }
    }

    /// Whether the contract names this other one.
    pub async fn check_role<C: SolCall<Return = Address>>(
        &self,
        contract: &'static str,
        at: Address,
        role: &'static str,
        call: C,
        expected: Address,
    ) -> Result<(), L1Error> {
        let given = self.ask(contract, at, role, call).await?;
        if given != expected {
            return Err(L1Error::OtherDeployment { contract, role, expected, given });
        }
        Ok(())
    }

    /// Whether the contract answers what it was to be deployed with.
    pub async fn expect<C>(
        &self,
        (name, address): (&'static str, Address),
        field: &'static str,
        call: C,
        expected: C::Return,
    ) -> Result<(), L1Error>
    where
        C: SolCall,
        C::Return: PartialEq + ToString,
    {
        let given = self.ask(name, address, field, call).await?;
        if given != expected {
            let (expected, given) = (expected.to_string(), given.to_string());
            return Err(L1Error::OtherDeployed { name, address, field, expected, given });
        }
        Ok(())
    }
}
