//! Totals of invoices over the real server: exact, the same as computed here, bounded, every refusal named.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use alloy_primitives::{B256, Bytes};
use blindfold_rlwe::schemes::invoice::Invoices;
use blindfold_rpc::confidential::ConfidentialApiClient;
use blindfold_rpc::limits::MAX_CONFIDENTIAL_REQUEST_BYTES;
use blindfold_rpc::{ClientConfig, HttpClient, ReceivedError, RunningRole, http_client};
use common::disk::Disk;
use common::*;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const SEED: u64 = 33;
const MASK: B256 = B256::repeat_byte(7);

struct Order {
    invoices: Invoices,
    key: Bytes,
    quantities: Bytes,
    prices: Bytes,
    expected: u64,
}

/// An order of so many random lines at the deployment of the tests.
fn order(lines: usize) -> Order {
    println!("seed {SEED}");
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let prices: Vec<u32> = (0..lines).map(|_| rng.next_u32()).collect();
    let quantities: Vec<u16> = (0..lines).map(|_| rng.next_u32() as u16).collect();
    let expected = prices.iter().zip(&quantities).map(|(&p, &q)| u64::from(p) * u64::from(q)).sum();
    let invoices = Invoices::new(&deployment().seed.0).unwrap();
    let key = invoices.key(&invoices.secret(&[1; 32]));
    let prices = invoices.encrypt_prices(&key, &prices, &mut rng).unwrap().encode().into();
    let quantities = invoices.encrypt_quantities(&key, &quantities, &mut rng).unwrap().encode().into();
    Order { key: key.encode().into(), invoices, quantities, prices, expected }
}

fn client(coprocessor: &blindfold_coprocessor::Coprocessor) -> HttpClient {
    let config =
        ClientConfig { max_request_bytes: MAX_CONFIDENTIAL_REQUEST_BYTES, ..ClientConfig::default() };
    http_client(&format!("http://{}", coprocessor.rpc_addr()), &config).unwrap()
}

async fn refused(client: &HttpClient, [key, quantities, prices]: [&Bytes; 3]) -> (String, bool, String) {
    let answer = client.get_invoice_total(key.clone(), quantities.clone(), prices.clone(), MASK).await;
    let error = ReceivedError::from(answer.unwrap_err());
    (error.reason().to_owned(), error.retry(), error.to_string())
}

#[tokio::test]
async fn a_total_is_the_plain_sum_and_what_is_wrong_is_named() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(&folder.path().join("store.sqlite"), None).await;
    let coprocessor = world.try_start(disk.clone(), disk).await.unwrap();
    let client = client(&coprocessor);
    let Order { invoices, key, quantities, prices, expected } = order(256);

    let answer =
        client.get_invoice_total(key.clone(), quantities.clone(), prices.clone(), MASK).await.unwrap();
    let total = invoices.decode_total(&answer).unwrap();
    let secret = invoices.secret(&[1; 32]);
    let ordered = invoices.decode_ciphertext(&quantities).unwrap();
    assert_eq!(invoices.open(&secret, &ordered, &total), Ok(expected));
    let (same_key, priced) =
        (invoices.decode_key(&key).unwrap(), invoices.decode_ciphertext(&prices).unwrap());
    let here = invoices.total(&same_key, &ordered, &priced, &MASK.0);
    assert_eq!(here.unwrap(), total, "computed again elsewhere, to the byte");
    assert_eq!(coprocessor.counters().invoices_computed.get(), 1);

    let cut = |bytes: &Bytes| bytes.slice(1..);
    let raised = |bytes: &Bytes| Bytes::from([&[0xff; 7][..], &bytes[7..]].concat());
    let claims = |bytes: &Bytes| {
        let mut bytes = bytes.to_vec();
        let noise = bytes.len() - 16;
        bytes[noise] ^= 1;
        Bytes::from(bytes)
    };
    for (call, reason) in [
        ([&cut(&key), &quantities, &prices], "invalid_key"),
        ([&raised(&key), &quantities, &prices], "invalid_key"),
        ([&Bytes::new(), &quantities, &prices], "invalid_key"),
        ([&key, &cut(&quantities), &prices], "invalid_quantities"),
        ([&key, &raised(&quantities), &prices], "invalid_quantities"),
        ([&key, &claims(&quantities), &prices], "invalid_quantities"),
        ([&key, &quantities, &cut(&prices)], "invalid_prices"),
        ([&key, &quantities, &claims(&prices)], "invalid_prices"),
        ([&key, &quantities, &answer], "invalid_prices"),
    ] {
        let (refusal, retry, text) = refused(&client, call).await;
        assert_eq!((refusal.as_str(), retry), (reason, false), "{text}");
    }
    coprocessor.shutdown().await;
}

#[tokio::test]
async fn more_at_once_than_there_are_places_are_told_to_come_back() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(&folder.path().join("store.sqlite"), None).await;
    let coprocessor = world.try_start(disk.clone(), disk).await.unwrap();
    let client = client(&coprocessor);
    let Order { invoices, key, quantities, prices, .. } = order(1);
    let calls =
        (0..8).map(|_| client.get_invoice_total(key.clone(), quantities.clone(), prices.clone(), MASK));
    let (mut computed, mut busy) = (Vec::new(), 0);
    for answer in futures::future::join_all(calls).await {
        match answer.map_err(ReceivedError::from) {
            Ok(total) => computed.push(total),
            Err(error) => {
                assert_eq!((error.reason(), error.retry()), ("invoices_busy", true), "{error}");
                busy += 1;
            }
        }
    }
    println!("{} computed, {busy} told to come back", computed.len());
    assert!(computed.iter().all(|total| *total == computed[0]) && !computed.is_empty());
    assert_eq!(coprocessor.counters().invoices_computed.get(), computed.len() as u64);
    // Places are free again, and other calls were served all the time.
    client.get_status().await.unwrap();
    let again = client.get_invoice_total(key, quantities, prices, MASK).await.unwrap();
    assert!(invoices.decode_total(&again).is_ok() && again == computed[0]);
    coprocessor.shutdown().await;
}
