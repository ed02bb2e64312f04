//! What members have at stake, where a deployment asks for that.

use blindfold_l1::{Acknowledged, DeployConfig, L1Error, deploy};
use blindfold_protocol::{B256, U256};

use crate::stage::{GOVERNOR, Stage, USER, anvil, deploy_config, encryption_key, key, reverted};

const STAKE_WEI: u128 = 1_000_000_000_000_000_000;

#[tokio::test]
async fn two_certificates_of_one_number_cost_their_signers_stakes() {
    let anvil = anvil().await;
    let config = DeployConfig { member_stake_wei: STAKE_WEI, ..deploy_config() };
    let addresses = deploy(anvil.url(), &key(0), config).await.unwrap();
    let stage = Stage { addresses, anvil, ..Stage::new().await };
    let governor = stage.writer(GOVERNOR).await;
    let epoch = stage.epoch(100, encryption_key());
    reverted(governor.register_epoch(&epoch).await, "StakeTooSmall");
    for member in &stage.members {
        governor.deposit_stake(member, governor.address(), U256::from(STAKE_WEI)).await.unwrap();
    }
    let reason = "servesUpTo: 0, lastNumber: 100";
    reverted(governor.register_epoch(&epoch).await, reason);
    for (member, last) in stage.members.iter().zip([99, 100, 100, 1_000].into_iter().cycle()) {
        governor.serve(&member.public_key(), last).await.unwrap();
    }
    reverted(governor.register_epoch(&epoch).await, "servesUpTo: 99, lastNumber: 100");
    let first = stage.members[0].public_key();
    reverted(stage.writer(USER).await.serve(&first, 100).await, "NotOwner");
    governor.serve(&first, 100).await.unwrap();
    let client = governor.client();
    assert_eq!(client.member_stake_wei().await.unwrap(), U256::from(STAKE_WEI));
    governor.register_epoch(&epoch).await.unwrap();
    stage.finalize().await;
    let epochs = client.epochs().await.unwrap();
    let member = stage.members[0].public_key();
    let stake = client.member_stake(&member).await.unwrap();
    assert_eq!((stake.owner, stake.last_epoch), (Some(governor.address()), 1));
    assert_eq!(stake.serves_up_to, 100);
    reverted(governor.announce_stake_withdrawal(&member, true).await, "EpochNotOver");
    reverted(governor.withdraw_stake(&member, governor.address()).await, "StakeLocked");

    let acknowledged = |gas: u64| {
        let header = stage.coded(None, vec![], &[], |header| header.gas = gas).header;
        Acknowledged { header, certificate: stage.certify(&epochs, &header) }
    };
    let (one, two) = (acknowledged(1), acknowledged(2));
    let reporter = stage.writer(USER).await;
    reverted(reporter.slash_members(&one, &one, B256::ZERO).await, "NoConflict");
    let salt = B256::repeat_byte(1);
    reverted(reporter.slash_members(&one, &two, salt).await, "NotCommitted");
    assert_eq!(client.stake_reward(reporter.address()).await.unwrap(), U256::ZERO);
    reporter.commit_members(&one, &two, salt).await.unwrap();
    stage.anvil.mine(1).await.unwrap();
    reporter.slash_members(&one, &two, salt).await.unwrap();
    let signed = |j: usize| one.certificate.signers >> j & 1 == 1;
    for (j, member) in stage.members.iter().enumerate() {
        let left = client.member_stake(&member.public_key()).await.unwrap().amount;
        assert_eq!(left.is_zero(), signed(j), "member {}", j + 1);
    }
    let slashed = U256::from(one.certificate.signers.count_ones()) * U256::from(STAKE_WEI);
    assert_eq!(client.stake_reward(reporter.address()).await.unwrap(), slashed / U256::from(2));
    reporter.claim_stake_reward().await.unwrap();
    assert_eq!(client.stake_reward(reporter.address()).await.unwrap(), U256::ZERO);
}

#[tokio::test]
async fn a_deployment_need_not_ask_for_stakes() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    assert_eq!(client.member_stakes().await.unwrap(), None);
    assert_eq!(client.member_stake_wei().await.unwrap(), U256::ZERO);
    assert_eq!(client.stake_reward(stage.writer(USER).await.address()).await.unwrap(), U256::ZERO);
    let key = stage.members[0].public_key();
    assert_eq!(client.member_stake(&key).await, Err(L1Error::NoStakes));
}
