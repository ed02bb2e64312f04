//! What members of committees have at stake (`MemberStakes`), where a deployment has that.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_sol_types::SolValue;
use blindfold_bte::bls::{PublicKey, SecretKey, Signature as BlsSignature};
use blindfold_protocol::{BatchHeader, Certificate};

use crate::{
    contracts::{CommitteeRegistry, MemberStakes},
    error::{L1Error, RunError},
    posting::evidence::commitment,
    reader::client::L1Client,
    submitter::{pending::Sent, writer::L1Writer},
};

/// What stands behind one member's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberStake {
    /// Who takes it out; `None` while nothing was ever deposited.
    pub owner: Option<Address>,
    /// What is at stake, in wei.
    pub amount: U256,
    /// The last epoch that the key is a member of; 0 for none.
    pub last_epoch: u64,
    /// The time, in seconds, from which it can be taken out; 0 when that is not announced.
    pub unlocks_at: u64,
    /// The key becomes a member of no further epoch that has numbers above this one.
    pub serves_up_to: u64,
}

/// A header and what proves that members acknowledged it: their signatures, one or added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The header that was acknowledged.
    pub header: BatchHeader,
    /// Who signed, and the signature. Number, epoch and header hash are what was signed.
    pub certificate: Certificate,
}

impl L1Client {
    /// What waits for whoever showed members' misdeeds, in wei; 0 where nothing is asked of members.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn stake_reward(&self, account: Address) -> Result<U256, L1Error> {
        let Some(stakes) = self.member_stakes().await? else { return Ok(U256::ZERO) };
        let call = MemberStakes::rewardsCall { reporter: account };
        self.inner.rpc.view("rewards", stakes, &call).await
    }

    /// The deployment's `MemberStakes`; `None` where nothing is asked of members.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn member_stakes(&self) -> Result<Option<Address>, L1Error> {
        let registry = self.inner.config.contracts.registry;
        let call = CommitteeRegistry::stakesCall {};
        let stakes = self.inner.rpc.view("stakes", registry, &call).await?;
        Ok((!stakes.is_zero()).then_some(stakes))
    }

    /// What each member of a new epoch must have at stake, in wei; 0 where nothing is asked of members.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn member_stake_wei(&self) -> Result<U256, L1Error> {
        let Some(stakes) = self.member_stakes().await? else { return Ok(U256::ZERO) };
        let least = self.inner.rpc.view("stakeWei", stakes, &MemberStakes::stakeWeiCall {}).await?;
        Ok(U256::from(least))
    }

    /// What stands behind a member's key.
    ///
    /// # Errors
    /// [`L1Error::NoStakes`]; the errors of a call.
    pub async fn member_stake(&self, key: &PublicKey) -> Result<MemberStake, L1Error> {
        let stakes = self.member_stakes().await?.ok_or(L1Error::NoStakes)?;
        let call = MemberStakes::stakesCall { keyHash: key_hash(key) };
        let found = self.inner.rpc.view("stakes", stakes, &call).await?;
        Ok(MemberStake {
            owner: (!found.owner.is_zero()).then_some(found.owner),
            amount: U256::from(found.amount),
            last_epoch: found.lastEpoch,
            unlocks_at: found.unlocksAt,
            serves_up_to: found.servesUpTo,
        })
    }
}

impl L1Writer {
    /// Adds to what stands behind a member's key. The key names the owner, who takes it out again.
    ///
    /// # Errors
    /// [`L1Error::NoStakes`]; [`L1Error::Reverted`] where the stake has another owner; the errors of a call.
    pub async fn deposit_stake(&self, key: &SecretKey, owner: Address, wei: U256) -> Result<Sent, L1Error> {
        let stakes = self.client().member_stakes().await?.ok_or(L1Error::NoStakes)?;
        let public = key.public_key();
        let call = MemberStakes::ownerDigestCall { keyHash: key_hash(&public), owner };
        let digest = self.client().inner.rpc.view("ownerDigest", stakes, &call).await?;
        // What is signed is computed here, not taken from an endpoint.
        let expected = owner_digest(&self.client().config().deployment.domain_separator(), &public, owner);
        if digest != expected {
            let reason = "ownerDigest is another than the deployment's".to_owned();
            return Err(L1Error::Malformed { method: "eth_call".to_owned(), reason });
        }
        let call = MemberStakes::depositCall {
            key: Bytes::copy_from_slice(&public.to_eip2537()),
            owner,
            signature: Bytes::copy_from_slice(&key.sign(&expected.0).to_eip2537()),
        };
        self.send("deposit", stakes, wei, &call).await
    }

    /// Says, as the stake's owner, up to which batch number its key may be a member of epochs that are registered from
    /// now on. Higher or lower at any time; 0 for none.
    ///
    /// # Errors
    /// [`L1Error::NoStakes`]; [`L1Error::Reverted`] for somebody else's stake; the errors of a call.
    pub async fn serve(&self, key: &PublicKey, last_number: u64) -> Result<Sent, L1Error> {
        let stakes = self.client().member_stakes().await?.ok_or(L1Error::NoStakes)?;
        let call = MemberStakes::serveCall { keyHash: key_hash(key), lastNumber: last_number };
        self.send("serve", stakes, U256::ZERO, &call).await
    }

    /// Announces, as its owner, that a stake will be taken out, or takes that back.
    ///
    /// # Errors
    /// [`L1Error::NoStakes`]; [`L1Error::Reverted`] before the key's last epoch is over; the errors of a call.
    pub async fn announce_stake_withdrawal(&self, key: &PublicKey, leaves: bool) -> Result<Sent, L1Error> {
        let stakes = self.client().member_stakes().await?.ok_or(L1Error::NoStakes)?;
        let call = MemberStakes::announceWithdrawalCall { keyHash: key_hash(key), leaves };
        self.send("announceWithdrawal", stakes, U256::ZERO, &call).await
    }

    /// Takes out, as its owner, an announced stake.
    ///
    /// # Errors
    /// [`L1Error::NoStakes`]; [`L1Error::Reverted`] before the delay is over; the errors of a call.
    pub async fn withdraw_stake(&self, key: &PublicKey, to: Address) -> Result<Sent, L1Error> {
        let stakes = self.client().member_stakes().await?.ok_or(L1Error::NoStakes)?;
        let call = MemberStakes::withdrawCall { keyHash: key_hash(key), to };
        self.send("withdraw", stakes, U256::ZERO, &call).await
    }

    /// Commits to two headers of one number that members acknowledged, so that nobody can copy the report.
    ///
    /// # Errors
    /// [`L1Error::NoStakes`]; the errors of a call.
    pub async fn commit_members(
        &self,
        first: &Acknowledged,
        second: &Acknowledged,
        salt: B256,
    ) -> Result<Sent, L1Error> {
        let stakes = self.client().member_stakes().await?.ok_or(L1Error::NoStakes)?;
        let (epoch, number) = (U256::from(first.certificate.epoch), U256::from(first.header.number));
        let (one, two) = (first.header.hash(), second.header.hash());
        let evidence = keccak256((epoch, number, one.min(two), one.max(two)).abi_encode());
        let commitment = commitment(self.address(), evidence, salt);
        self.send("commit", stakes, U256::ZERO, &MemberStakes::commitCall { commitment }).await
    }

    /// Shows what was committed to in an earlier block: everybody who acknowledged both headers loses the stake.
    ///
    /// # Errors
    /// [`L1Error::NoStakes`]; [`L1Error::Run`] for a signature that is none; [`L1Error::Reverted`]; the errors of a call.
    pub async fn slash_members(
        &self,
        first: &Acknowledged,
        second: &Acknowledged,
        salt: B256,
    ) -> Result<Sent, L1Error> {
        let stakes = self.client().member_stakes().await?.ok_or(L1Error::NoStakes)?;
        let epoch = first.certificate.epoch;
        let call = MemberStakes::slashDoubleCall {
            epoch,
            first: acknowledged(first)?,
            second: acknowledged(second)?,
            salt,
        };
        self.reveal("slashDouble", stakes, U256::ZERO, &call).await
    }

    /// Commits to the report of two headers and reports them when the commitment is in a block; a block later it can
    /// be shown.
    ///
    /// # Errors
    /// As [`L1Writer::slash_members`].
    pub async fn report_members(
        &self,
        first: &Acknowledged,
        second: &Acknowledged,
        salt: B256,
    ) -> Result<Sent, L1Error> {
        self.commit_members(first, second, salt).await?;
        self.slash_members(first, second, salt).await
    }

    /// Takes out the account's rewards for such reports.
    ///
    /// # Errors
    /// [`L1Error::NoStakes`]; [`L1Error::Reverted`] when there are none; the errors of a call.
    pub async fn claim_stake_reward(&self) -> Result<Sent, L1Error> {
        let stakes = self.client().member_stakes().await?.ok_or(L1Error::NoStakes)?;
        self.send("claimReward", stakes, U256::ZERO, &MemberStakes::claimRewardCall {}).await
    }
}

fn acknowledged(given: &Acknowledged) -> Result<MemberStakes::Acknowledged, L1Error> {
    let signature =
        BlsSignature::from_bytes(&given.certificate.signature).map_err(|_| RunError::Signature)?;
    Ok(MemberStakes::Acknowledged {
        header: (&given.header).into(),
        signers: given.certificate.signers,
        signature: Bytes::copy_from_slice(&signature.to_eip2537()),
    })
}

fn key_hash(key: &PublicKey) -> B256 {
    keccak256(key.to_eip2537())
}

/// What a member signs to name the owner of its stake: `MemberStakes.ownerDigest`.
fn owner_digest(domain: &B256, key: &PublicKey, owner: Address) -> B256 {
    let typehash = keccak256("StakeOwner(uint8 version,bytes32 keyHash,address owner)");
    let hash = keccak256((typehash, U256::from(2), key_hash(key), owner).abi_encode());
    keccak256([[0x19, 0x01].as_slice(), domain.as_slice(), hash.as_slice()].concat())
}
