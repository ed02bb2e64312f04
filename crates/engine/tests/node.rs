//! The seam against the real client: determinism, crashes, deposits, finality, reads, refusals.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod common;

use std::{collections::HashMap, fs, os::unix::fs::PermissionsExt};

use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};
use alloy_rlp::{Encodable, Header};
use async_trait::async_trait;
use blindfold_engine::{
    BlockId, EngineError, ExecutedBlock, ExecutionClient, JwtSecret, ManagedNode, ManagedNodeConfig,
    ManagedNodeError, OpGeth, OpGethConfig, PayloadSource, PayloadSourceError, ReadError, Recovery,
    SkipReason, StoredPayload, TransportError, replay,
};
use common::{TRANSFER_GAS, Wallet, genesis, inputs, node_binary, start};
use serde_json::{Value, json};

/// Encoded payloads by number, as a store keeps them.
#[derive(Default)]
struct Kept(HashMap<u64, Vec<u8>>);

#[async_trait]
impl PayloadSource for Kept {
    async fn payload(&self, number: u64) -> Result<Option<StoredPayload>, PayloadSourceError> {
        let decoded = self.0.get(&number).map(|bytes| StoredPayload::decode(bytes)).transpose();
        decoded.map_err(|error| PayloadSourceError { number, source: error.into() })
    }
}

/// The list of block `number`: two transfers, and some that must be skipped.
fn list(alice: &Wallet, bob: &Wallet, number: u64) -> Vec<Bytes> {
    let nonce = number - 1;
    vec![
        alice.transfer(nonce, bob.address, 1_000 + number),
        alice.transfer(nonce + 5, bob.address, 1),
        Bytes::from_static(b"\x7egarbage"),
        bob.transfer(nonce, alice.address, number),
        alice.transfer(nonce, bob.address, 1_000 + number),
    ]
}

async fn execute_blocks(
    client: &OpGeth,
    genesis: B256,
    wallets: (&Wallet, &Wallet),
    count: u64,
) -> Vec<ExecutedBlock> {
    execute_from(client, BlockId { number: 0, hash: genesis, timestamp: 0 }, wallets, count).await
}

async fn execute_from(
    client: &OpGeth,
    head: BlockId,
    wallets: (&Wallet, &Wallet),
    last: u64,
) -> Vec<ExecutedBlock> {
    let mut parent = head.hash;
    let mut blocks = Vec::new();
    for number in head.number + 1..=last {
        let list = list(wallets.0, wallets.1, number);
        let block = client.execute(parent, &inputs(10 + number), &list).await.unwrap();
        assert_eq!((block.number, block.parent_hash), (number, parent));
        assert_eq!(block.transactions.len(), 3);
        let reasons: Vec<_> = block.skipped.iter().map(|skipped| (skipped.index, skipped.reason)).collect();
        assert_eq!(
            reasons,
            [(1, SkipReason::NonceTooHigh), (2, SkipReason::TypeNotAllowed), (4, SkipReason::Duplicate)]
        );
        parent = block.hash;
        blocks.push(block);
    }
    blocks
}

async fn balance(client: &OpGeth, of: Address) -> U256 {
    let value = client.read("eth_getBalance", json!([of, "latest"])).await.unwrap();
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_crashed_client_is_brought_back_and_a_second_one_agrees() {
    // The client keeps 128 states in memory and more until its buffer is full: with this many blocks a part
    // of the states is on disk and a part is lost.
    const BLOCKS: u64 = 400;
    let (alice, bob) = (Wallet::new(1), Wallet::new(2));
    let genesis = genesis(&[&alice, &bob]);
    let folders = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut first = start(folders.0.path(), genesis.clone()).await;
    let blocks = execute_blocks(&first.client(), first.genesis_hash(), (&alice, &bob), BLOCKS).await;
    let head = blocks.last().unwrap().id();
    let kept = Kept(blocks.iter().map(|block| (block.number, block.payload.encode())).collect());

    // Whoever calls while the client is away is told to come again.
    let before = first.client();
    first.kill().await.unwrap();
    let error = before.head().await.unwrap_err();
    assert!(matches!(error, EngineError::Transport(TransportError::Unreachable { .. })), "{error}");
    assert_eq!(error.recovery(), Recovery::Retry);

    first.restart().await.unwrap();
    let client = first.client();
    let lost = client.head().await.unwrap();
    assert!(lost.number < BLOCKS, "SIGKILL costs the client blocks, else this test shows nothing");
    let error = client.execute(head.hash, &inputs(head.timestamp + 100), &[]).await.unwrap_err();
    assert_eq!(error.recovery(), Recovery::Replay, "{error}");
    let report = replay(&client, &kept, head).await.unwrap();
    assert_eq!((report.common, report.imported), (lost.number, BLOCKS - lost.number));
    assert_eq!(client.head().await.unwrap(), head);
    assert_eq!(replay(&client, &kept, head).await.unwrap().imported, 0);

    // The restored client goes on, and a repetition gives the same block again.
    let next = list(&alice, &bob, BLOCKS + 1);
    let block = client.execute(head.hash, &inputs(head.timestamp + 200), &next).await.unwrap();
    assert_eq!(client.execute(head.hash, &inputs(head.timestamp + 200), &next).await.unwrap(), block);
    // It is now ahead of what is kept; another block on the kept head replaces what is above.
    assert_eq!(replay(&client, &kept, head).await.unwrap().imported, 0);
    assert_eq!(client.head().await.unwrap(), block.id());
    let other = client.execute(head.hash, &inputs(head.timestamp + 300), &next).await.unwrap();
    assert_eq!(client.head().await.unwrap(), other.id());
    assert_ne!(other.hash, block.hash);

    let second = start(folders.1.path(), genesis).await;
    let error = second.client().import(&blocks[BLOCKS as usize - 1].payload).await.unwrap_err();
    assert_eq!(error.recovery(), Recovery::Replay, "{error}");
    let again = execute_blocks(&second.client(), second.genesis_hash(), (&alice, &bob), BLOCKS).await;
    assert_eq!(again, blocks);

    // Records that are far behind it: nothing is built on a state of that long ago, before it has gone back there.
    let mut second = second;
    let client = second.client();
    let back = BLOCKS - 200;
    let hash = blocks[back as usize - 1].hash;
    let next = list(&alice, &bob, back + 1);
    let error = client.execute(hash, &inputs(10 + back + 1), &next).await.unwrap_err();
    assert_eq!(error, EngineError::UnknownBlock { hash });
    client.rewind(hash).await.unwrap();
    assert_eq!(client.head().await.unwrap().number, back);
    let block = client.execute(hash, &inputs(10 + back + 1), &next).await.unwrap();
    assert_eq!(block, blocks[back as usize]);
    // What went back is back after a crash, too: it is brought again where its state was not written.
    second.kill().await.unwrap();
    second.restart().await.unwrap();
    let client = second.client();
    replay(&client, &kept, block.id()).await.unwrap();
    assert_eq!(client.head().await.unwrap(), block.id());
    let again = execute_from(&client, block.id(), (&alice, &bob), BLOCKS).await;
    let unknown = B256::repeat_byte(7);
    assert_eq!(client.rewind(unknown).await.unwrap_err(), EngineError::UnknownBlock { hash: unknown });
    // Records without a block may be the wrong ones: a person decides.
    let error = client.rewind(second.genesis_hash()).await.unwrap_err();
    assert_eq!(error.recovery(), Recovery::GiveUp, "{error}");
    assert!(error.to_string().contains("an empty data folder"), "{error}");
    assert_eq!(client.head().await.unwrap(), again.last().unwrap().id());

    // A clean stop loses nothing.
    first.stop().await.unwrap();
    first.restart().await.unwrap();
    assert_eq!(first.client().head().await.unwrap(), other.id());
}

/// A user deposit as L1 would give it: mints and sends to the same account.
fn user_deposit(to: Address, wei: u64) -> Bytes {
    deposit(b"a deposit", to, wei, wei)
}

/// A deposit that mints for `to` and then sends itself `value` wei, which it may not have.
fn deposit(source: &[u8], to: Address, wei: u64, value: u64) -> Bytes {
    let mut fields = Vec::new();
    keccak256(source).encode(&mut fields);
    to.encode(&mut fields);
    to.encode(&mut fields);
    for number in [wei, value, 100_000u64] {
        number.encode(&mut fields);
    }
    false.encode(&mut fields);
    (&[] as &[u8]).encode(&mut fields);
    let mut raw = vec![0x7e];
    Header { list: true, payload_length: fields.len() }.encode(&mut raw);
    raw.extend_from_slice(&fields);
    raw.into()
}

#[tokio::test]
async fn a_deposit_mints_whatever_becomes_of_its_call() {
    let (alice, bob) = (Wallet::new(8), Wallet::new(9));
    let folder = tempfile::tempdir().unwrap();
    let node = start(folder.path(), genesis(&[])).await;
    let client = node.client();
    let mut with_deposits = inputs(11);
    // The second sends more than there is: its call fails, its mint stands.
    with_deposits.l1_deposits =
        vec![deposit(b"one", alice.address, 700, 700), deposit(b"two", bob.address, 300, 301)];
    let block = client.execute(node.genesis_hash(), &with_deposits, &[]).await.unwrap();
    assert_eq!((block.transactions.len(), block.skipped.len()), (3, 0));
    for (place, status) in [(1, "0x1"), (2, "0x0")] {
        let hash = block.transactions[place];
        assert_eq!(hash, keccak256(&with_deposits.l1_deposits[place - 1]));
        let receipt = client.read("eth_getTransactionReceipt", json!([hash])).await.unwrap();
        assert_eq!(receipt["status"], json!(status));
    }
    assert_eq!(balance(&client, alice.address).await, U256::from(700));
    assert_eq!(balance(&client, bob.address).await, U256::from(300));
}

#[tokio::test]
async fn money_is_conserved_and_only_l1_deposits_mint() {
    // Where the OP Stack collects base fees, L1 fees and operator fees.
    const BASE_FEES: Address = address!("4200000000000000000000000000000000000019");
    const L1_FEES: Address = address!("420000000000000000000000000000000000001a");
    const OPERATOR_FEES: Address = address!("420000000000000000000000000000000000001b");
    let (alice, bob, poor) = (Wallet::new(3), Wallet::new(4), Wallet::new(5));
    let folder = tempfile::tempdir().unwrap();
    let node = start(folder.path(), genesis(&[&alice, &bob])).await;
    let client = node.client();
    let ether = U256::from(10).pow(U256::from(18));

    let thief = user_deposit(poor.address, 1 << 60);
    let mut with_deposit = inputs(11);
    with_deposit.l1_deposits = vec![user_deposit(poor.address, 5_000_000_000_000_000)];
    let list = vec![thief, alice.transfer(0, bob.address, 77), poor.transfer(1, bob.address, 1)]; // a deposit raises its sender's nonce
    let block = client.execute(node.genesis_hash(), &with_deposit, &list).await.unwrap();
    assert_eq!(block.transactions.len(), 4);
    assert_eq!(block.skipped.len(), 1);
    assert_eq!(block.skipped[0].reason, SkipReason::TypeNotAllowed);

    let fee_recipient = with_deposit.fee_recipient;
    let mut sum = U256::ZERO;
    for address in [alice.address, bob.address, poor.address, fee_recipient, BASE_FEES] {
        sum += balance(&client, address).await;
    }
    assert_eq!(sum, ether * U256::from(2) + U256::from(5_000_000_000_000_000u64));
    assert_eq!(balance(&client, fee_recipient).await, U256::from(2 * TRANSFER_GAS), "1 wei per gas");
    for vault in [L1_FEES, OPERATOR_FEES] {
        assert_eq!(balance(&client, vault).await, U256::ZERO, "no fee beside gas");
    }
    // A zero DA-footprint scalar is zero, not op-node's default of 400.
    let header = client.read("eth_getBlockByNumber", json!(["latest", false])).await.unwrap();
    assert_eq!(header["blobGasUsed"], json!("0x0"));
    let receipt = client.read("eth_getTransactionReceipt", json!([block.transactions[2]])).await.unwrap();
    assert_eq!(receipt["status"], json!("0x1"));
    assert_eq!(receipt["l1Fee"], json!("0x0"));

    // The system contracts answer: beacon root and parent hash of this block.
    let root = call(&client, address!("000f3df6d732807ef1319fb7b8bb8522d0beac02"), U256::from(11)).await;
    assert_eq!(root.unwrap(), json!(with_deposit.l1_origin.parent_beacon_block_root));
    let parent = call(&client, address!("0000f90827f1c53a10cb7a02335b175320002935"), U256::ZERO).await;
    assert_eq!(parent.unwrap(), json!(node.genesis_hash()));
}

async fn call(client: &OpGeth, to: Address, word: U256) -> Result<Value, ReadError> {
    let data = Bytes::from(word.to_be_bytes_vec());
    client.read("eth_call", json!([{"to": to, "data": data}, "latest"])).await
}

#[tokio::test]
async fn finality_reads_and_refusals() {
    let (alice, bob) = (Wallet::new(6), Wallet::new(7));
    let folder = tempfile::tempdir().unwrap();
    let node = start(folder.path(), genesis(&[&alice, &bob])).await;
    let client = node.client();
    let genesis = node.genesis_hash();
    let info = client.check_compatible(common::CHAIN_ID).await.unwrap();
    assert_eq!(info.genesis_hash, genesis);
    let error = client.check_compatible(1).await.unwrap_err();
    assert!(matches!(error, EngineError::IncompatibleClient { .. }), "{error}");
    let genesis_id = BlockId { number: 0, hash: genesis, timestamp: 0 };
    assert_eq!(client.head().await.unwrap(), genesis_id);
    assert_eq!(client.block(0).await.unwrap(), Some(genesis_id));
    assert_eq!(client.block(1).await.unwrap(), None);
    assert_eq!(client.finalized().await.unwrap(), None);

    let blocks = execute_blocks(&client, genesis, (&alice, &bob), 3).await;
    client.set_finality(blocks[1].hash, blocks[0].hash).await.unwrap();
    for (tag, block) in [("latest", &blocks[2]), ("safe", &blocks[1]), ("finalized", &blocks[0])] {
        let read = client.read("eth_getBlockByNumber", json!([tag, false])).await.unwrap();
        assert_eq!(read["hash"], json!(block.hash), "{tag}");
    }
    assert_eq!(client.finalized().await.unwrap(), Some(blocks[0].number));
    client.set_finality(blocks[2].hash, B256::ZERO).await.unwrap();
    let error = client.set_finality(B256::repeat_byte(9), B256::ZERO).await.unwrap_err();
    assert!(matches!(error, EngineError::UnknownFinality { .. }), "{error}");

    let head = blocks[2].hash;
    let unknown = client.execute(B256::repeat_byte(7), &inputs(50), &[]).await.unwrap_err();
    assert_eq!(unknown, EngineError::UnknownBlock { hash: B256::repeat_byte(7) });
    let late = client.execute(head, &inputs(blocks[2].timestamp), &[]).await.unwrap_err();
    assert!(matches!(late, EngineError::InvalidInputs { .. }), "{late}");
    let mut small = inputs(50);
    small.gas_limit = 10;
    let small = client.execute(head, &small, &[]).await.unwrap_err();
    assert!(matches!(small, EngineError::InvalidInputs { .. }), "{small}");

    // A payload whose bytes were changed in storage does not get in.
    let text = String::from_utf8(blocks[2].payload.encode()).unwrap();
    let root = format!("{}", blocks[2].state_root);
    let forged = text.replace(&root, &B256::repeat_byte(1).to_string());
    assert_ne!(forged, text);
    let forged = StoredPayload::decode(forged.as_bytes()).unwrap();
    let error = client.import(&forged).await.unwrap_err();
    assert!(matches!(error, EngineError::InvalidBlock { .. }), "{error}");
    assert_eq!(client.head().await.unwrap().hash, head);

    // An error of the client's own passes through; methods that act do not.
    let error = client.read("eth_getBalance", json!(["nobody", "latest"])).await.unwrap_err();
    assert!(matches!(error, ReadError::Rpc { code: -32602, .. }), "{error}");
    let error = client.read("eth_sendRawTransaction", json!(["0x02"])).await.unwrap_err();
    assert!(matches!(error, ReadError::NotAllowed { .. }), "{error}");
    let logs = client.read("eth_getLogs", json!([{"fromBlock": "0x0"}])).await.unwrap();
    assert_eq!(logs, json!([]));

    let stranger = OpGethConfig::new(node.engine_url(), node.http_url(), JwtSecret::generate().unwrap());
    let error = OpGeth::new(stranger).head().await.unwrap_err();
    assert!(matches!(error, EngineError::Transport(TransportError::Unauthorized { .. })), "{error}");
    // The public port has no method that moves the chain.
    let public = OpGethConfig::new(node.http_url(), node.http_url(), node.jwt_secret().clone());
    let error = OpGeth::new(public).execute(head, &inputs(60), &[]).await.unwrap_err();
    assert!(matches!(error, EngineError::Rpc { code: -32601, .. }), "{error}");
}

#[tokio::test]
async fn nodes_that_cannot_start_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let config = ManagedNodeConfig::new(folder.path().join("none"), folder.path(), genesis(&[]));
    let error = ManagedNode::start(config).await.unwrap_err();
    assert!(matches!(error, ManagedNodeError::NoBinary(_)), "{error}");

    let mut broken = genesis(&[]);
    broken["config"]["chainId"] = json!(0);
    let config = ManagedNodeConfig::new(node_binary(), folder.path().join("a"), broken);
    let error = ManagedNode::start(config.clone()).await.unwrap_err();
    assert!(matches!(&error, ManagedNodeError::Died { tail, .. } if tail.contains("chain id")), "{error}");
    let other = ManagedNodeConfig { genesis: genesis(&[]), ..config };
    let error = ManagedNode::start(other).await.unwrap_err();
    assert!(matches!(error, ManagedNodeError::DifferentGenesis(_)), "{error}");

    let data_dir = folder.path().join("b");
    fs::create_dir(&data_dir).unwrap();
    fs::write(data_dir.join("jwt.hex"), "short").unwrap();
    let config = ManagedNodeConfig::new(node_binary(), &data_dir, genesis(&[]));
    let error = ManagedNode::start(config).await.unwrap_err();
    assert!(matches!(error, ManagedNodeError::Secret(_)), "{error}");

    fs::write(folder.path().join("file"), "").unwrap();
    let config = ManagedNodeConfig::new(node_binary(), folder.path().join("file"), genesis(&[]));
    let error = ManagedNode::start(config).await.unwrap_err();
    assert!(matches!(error, ManagedNodeError::Io { .. }), "{error}");

    // A program that never says anything; it ends when its standard input closes.
    let silent = folder.path().join("silent");
    fs::write(&silent, "#!/bin/sh\nexec cat\n").unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o700)).unwrap();
    let mut config = ManagedNodeConfig::new(&silent, folder.path().join("d"), genesis(&[]));
    config.ready_timeout_ms = 20;
    let error = ManagedNode::start(config).await.unwrap_err();
    assert!(matches!(error, ManagedNodeError::NotReady { timeout_ms: 20, .. }), "{error}");

    // A program that is no node.
    let config = ManagedNodeConfig::new("/bin/echo", folder.path().join("c"), genesis(&[]));
    let error = ManagedNode::start(config).await.unwrap_err();
    assert!(matches!(error, ManagedNodeError::BadReadyLine(_)), "{error}");
}
