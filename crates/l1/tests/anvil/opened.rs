//! Data as what envelopes were opened to, with the keys in the hints.

use alloy_sol_types::SolCall;
use blindfold_bte::SessionKey;
use blindfold_l1::{
    CodedBatch, DataError, DataPlace, HintPosting, HintsReference, KeyedBatch, L1Client, L1Error, L1Writer,
    OpenedData, RunData, Sent, Supplier, contracts::BlindedInbox, split_run_data,
};
use blindfold_protocol::{
    Bytes, Canonical, DecodeError, HintEntry, SealedBatch,
    opened::{BatchTerms, OpenBatch, RunTerms},
};
use serde_json::json;

use crate::{
    hints::{CODES, Game},
    stage::{CHAIN_ID, GOVERNOR, USER, key},
};

/// The batches with the keys of their hints.
fn keyed(game: &Game) -> Vec<KeyedBatch> {
    let key = |entry: &HintEntry| match entry {
        HintEntry::Key(key) => Some(SessionKey::from_bytes(*key)),
        _ => None,
    };
    let one = |(batch, hints): (&SealedBatch, &blindfold_protocol::BatchHints)| KeyedBatch {
        batch: CodedBatch { sealed: batch.clone(), codes: CODES.to_vec() },
        keys: hints.entries.iter().map(key).collect(),
    };
    game.batches.iter().zip(&game.truth).map(one).collect()
}

async fn post_hints(game: &Game, publisher: &L1Writer, hints: &HintPosting) -> HintsReference {
    publisher.post_hints(&game.run.run, hints).await.unwrap();
    let through = game.stage.finalize().await;
    let posted = publisher.client().posted_hints(0, through).await.unwrap().pop().unwrap();
    HintsReference { id: posted.id, l1_block: posted.l1_block }
}

/// Posts batches as what they were opened to, in one piece.
async fn post_opened(
    poster: &L1Writer,
    chain_id: u64,
    batches: &[KeyedBatch],
    hints: HintsReference,
) -> Result<Sent, L1Error> {
    let pieces = poster.opened_data(chain_id, batches, hints).await?;
    let [piece] = &pieces[..] else { panic!("{} pieces", pieces.len()) };
    poster.post_opened_data(piece).await
}

async fn found(game: &Game, client: &L1Client) -> (Vec<SealedBatch>, Option<DataError>) {
    let through = game.stage.finalize().await;
    let found = client.reposted_data(&game.run.headers, 0, through).await.unwrap();
    (found.batches, found.unread)
}

#[tokio::test]
async fn opened_data_gives_the_batches_back_to_whoever_has_l1_alone() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let hints = post_hints(&game, &publisher, &HintPosting::of(&game.truth)).await;
    let poster = game.stage.writer(USER).await;
    let client = poster.client();
    let lacking = client.data_standing(0, 0, Supplier::default()).await.unwrap().lacking;
    assert_eq!(lacking, [(1, 2)]);

    let batches = keyed(&game);
    // The rollup's chain id is one above L1's here.
    let sent = post_opened(&poster, CHAIN_ID + 1, &batches, hints).await.unwrap();
    let coded: Vec<CodedBatch> = batches.iter().map(|keyed| keyed.batch.clone()).collect();
    println!("{} gas; as they are the data take {} bytes", sent.gas_used, RunData::of(&coded).encode().len());
    assert_eq!(found(&game, client).await, (game.batches.clone(), None));
    let through = client.finalized().await.unwrap().number;
    // For whoever has nothing, has all, has the keys to nothing, or has something else.
    let mut without = batches.clone();
    without.iter_mut().for_each(|batch| batch.keys.fill(None));
    let mut others = batches.clone();
    others[0].batch.sealed.items[0][9] ^= 1;
    others[1].batch.sealed.header.timestamp_ms += 1;
    for own in [Vec::new(), batches.clone(), batches[1..].to_vec(), without, others] {
        let data = client.posted_data(&game.run.run, own, through).await.unwrap();
        assert_eq!(data.whole(), Ok(game.batches.clone()));
    }
    assert_eq!(client.data_standing(0, 0, Supplier::default()).await.unwrap().lacking, []);
}

/// A key that is not the item's: the item stands as it is, and the rest is opened.
#[tokio::test]
async fn what_a_key_does_not_give_back_stands_as_it_is() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let hints = post_hints(&game, &publisher, &HintPosting::of(&game.truth)).await;
    let mut batches = keyed(&game);
    batches[1].keys = vec![Some(SessionKey::from_bytes([1; 16])), Some(SessionKey::from_bytes([2; 16]))];
    post_opened(&publisher, CHAIN_ID + 1, &batches, hints).await.unwrap();
    assert_eq!(found(&game, publisher.client()).await, (game.batches.clone(), None));
}

/// Data that name hints that are wrong, or are not there, count for nothing; what comes later does.
#[tokio::test]
async fn wrong_hints_and_hints_that_are_not_there_give_no_data() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let mut wrong = HintPosting::of(&game.truth);
    wrong.batches[0].entries[0].key[0] ^= 1;
    let wrong = post_hints(&game, &publisher, &wrong).await;
    let poster = game.stage.writer(USER).await;
    let (client, batches) = (poster.client(), keyed(&game));
    let absent = HintsReference { id: wrong.id + 1, ..wrong };
    let later = HintsReference { l1_block: u64::MAX, ..wrong };
    for hints in [absent, later] {
        post_opened(&poster, CHAIN_ID + 1, &batches, hints).await.unwrap();
        assert_eq!(found(&game, client).await, (vec![], None));
    }
    post_opened(&poster, CHAIN_ID + 1, &batches, wrong).await.unwrap();
    // The second batch's hints are right; the first that does not fit ends the reading, however often it is read.
    for _ in 0..2 {
        let some = found(&game, client).await;
        assert!(some == (vec![], None), "{} batches", some.0.len());
    }
    post_opened(&poster, CHAIN_ID + 1, &batches[1..], wrong).await.unwrap();
    let some = found(&game, client).await;
    assert!(some == (game.batches[1..].to_vec(), None), "{} batches", some.0.len());
    // Of another chain.
    let right = post_hints(&game, &publisher, &HintPosting::of(&game.truth)).await;
    post_opened(&poster, CHAIN_ID, &batches[..1], right).await.unwrap();
    let all = found(&game, client).await;
    assert!(all == (game.batches.clone(), None), "everything of it stands as it is");
}

/// A batch that does not fit takes nothing from those in front of it, however often the data is read (PD-2).
#[tokio::test]
async fn what_stands_in_front_of_a_wrong_batch_stays_there() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let mut wrong = HintPosting::of(&game.truth);
    wrong.batches[1].entries[0].key[0] ^= 1;
    let wrong = post_hints(&game, &publisher, &wrong).await;
    let poster = game.stage.writer(USER).await;
    let batches = keyed(&game);
    post_opened(&poster, CHAIN_ID + 1, &batches, wrong).await.unwrap();
    let reader = game.stage.client().await;
    for _ in 0..2 {
        let some = found(&game, &reader).await;
        assert!(some == (game.batches[..1].to_vec(), None), "{} batches", some.0.len());
        let standing = reader.data_standing(0, 0, Supplier::default()).await.unwrap();
        assert_eq!(standing.lacking, [(2, 2)]);
    }
    poster.post_data(std::slice::from_ref(&batches[1].batch)).await.unwrap();
    let all = found(&game, &reader).await;
    assert!(all == (game.batches.clone(), None), "{} batches", all.0.len());
}

/// Hints in blobs: a reader that has no beacon node never gets them, so to that one the data is lacking.
#[tokio::test]
async fn hints_in_blobs_are_needed_to_read_it() {
    let game = Game::new().await;
    let publisher = game.publisher().await.with_data_in(DataPlace::Blobs);
    let hints = post_hints(&game, &publisher, &HintPosting::of(&game.truth)).await;
    let poster = game.stage.writer(USER).await;
    post_opened(&poster, CHAIN_ID + 1, &keyed(&game), hints).await.unwrap();
    assert_eq!(found(&game, poster.client()).await, (game.batches.clone(), None));
    let mut config = game.stage.config();
    config.beacon_url = None;
    let blind = L1Client::connect(config).await.unwrap();
    assert_eq!(found(&game, &blind).await.0, vec![]);
    assert_eq!(blind.data_standing(0, 0, Supplier::default()).await.unwrap().lacking, [(1, 2)]);
}

/// Whoever posted it does not encrypt it again to see that it is there; whoever else asks does, once.
#[tokio::test]
async fn what_was_compared_is_there_without_its_hints() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let hints = post_hints(&game, &publisher, &HintPosting::of(&game.truth)).await;
    let poster = game.stage.writer(USER).await;
    // The blobs of the hints are not asked for again, nor anything else of them.
    post_opened(&poster, CHAIN_ID + 1, &keyed(&game), hints).await.unwrap();
    let lacks = async |writer: &L1Writer| writer.lacks_new_data(&game.run.headers).await.unwrap();
    assert!(!lacks(&poster).await);
    game.stage.finalize().await;
    let lacking = poster.data_standing(0, 0).await.unwrap().lacking;
    assert_eq!(lacking, []);
    let stranger = game.stage.writer(USER).await;
    for _ in 0..2 {
        assert_eq!(stranger.data_standing(0, 0).await.unwrap().lacking, []);
    }
}

/// What was made here and not taken is not there, though somebody posts the same bytes in another place: there each batch
/// stands for another number.
#[tokio::test]
async fn a_copy_from_another_number_on_is_not_taken_for_ours() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let hints = post_hints(&game, &publisher, &HintPosting::of(&game.truth)).await;
    let poster = game.stage.writer(USER).await;
    game.stage.anvil.call("anvil_setBalance", json!([poster.address(), "0x0"])).await.unwrap();
    let batches = keyed(&game);
    post_opened(&poster, CHAIN_ID + 1, &batches, hints).await.expect_err("it has no ether");

    let run = RunTerms { chain_id: CHAIN_ID + 1, deployment: game.stage.deployment() };
    let encryption_key_hash = poster.client().epochs().await.unwrap().as_slice()[0].encryption_key_hash;
    let mut open = Vec::new();
    for keyed in &batches {
        let KeyedBatch { batch: CodedBatch { sealed, codes }, keys } = keyed;
        let terms = BatchTerms { number: sealed.header.number, epoch: 1, encryption_key_hash };
        open.push(OpenBatch { terms, signature: &sealed.signature, codes, items: &sealed.items, keys });
    }
    let data = OpenedData::encode(&run, hints, &open).unwrap();
    for (first, lacking) in [(2, vec![(1, 2)]), (1, vec![])] {
        let part = split_run_data(first, first + 1, &data, 1 << 17).unwrap().remove(0);
        let call = BlindedInbox::postDataCall { firstNumber: first, data: part.encode().into() };
        let transaction = json!({
            "from": key(GOVERNOR).address(),
            "to": game.stage.deployment().inbox,
            "data": Bytes::from(call.abi_encode()),
            "gas": "0x1000000",
        });
        game.stage.anvil.call("eth_sendTransaction", json!([transaction])).await.unwrap();
        game.stage.finalize().await;
        assert_eq!(poster.data_standing(0, 0).await.unwrap().lacking, lacking, "from {first} on");
    }
}

/// OD-4: what a slashed posting opened stays readable where its keys are right; where they are wrong the data is lacking, and
/// data as it is completes it.
#[tokio::test]
async fn a_slashing_takes_no_right_data_away_and_wrong_data_is_supplied_as_it_is() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let mut wrong = HintPosting::of(&game.truth);
    wrong.batches[0].entries[0].key[0] ^= 1;
    let slashed = post_hints(&game, &publisher, &wrong).await;
    let poster = game.stage.writer(USER).await;
    let batches = keyed(&game);
    for batches in [&batches[..1], &batches[1..]] {
        post_opened(&poster, CHAIN_ID + 1, batches, slashed).await.unwrap();
    }
    for is_slashed in [false, true] {
        if is_slashed {
            game.dispute(&game.stage.writer(USER).await, slashed.id, &wrong, 0).await.unwrap();
        }
        let reader = game.stage.writer(USER).await;
        assert_eq!(found(&game, reader.client()).await, (game.batches[1..].to_vec(), None));
        assert_eq!(reader.data_standing(0, 0).await.unwrap().lacking, [(1, 1)]);
    }
    poster.post_data(std::slice::from_ref(&batches[0].batch)).await.unwrap();
    let reader = game.stage.writer(USER).await;
    assert_eq!(found(&game, reader.client()).await, (game.batches.clone(), None));
    assert_eq!(reader.data_standing(0, 0).await.unwrap().lacking, []);
}

/// OD-6: a member reads what is not posted yet as it would read it from L1, whoever made it and with which library.
#[tokio::test]
async fn what_is_about_to_be_posted_is_read_as_it_will_be() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let mut wrong = HintPosting::of(&game.truth);
    wrong.batches[0].entries[0].key[0] ^= 1;
    let slashed = post_hints(&game, &publisher, &wrong).await;
    let poster = game.stage.writer(USER).await;
    let batches = keyed(&game);
    let of = async |batches: &[KeyedBatch], hints| {
        let mut pieces = poster.opened_data(CHAIN_ID + 1, batches, hints).await.unwrap();
        (pieces.len() == 1).then(|| pieces.remove(0).data).unwrap()
    };
    // Each asks an own client: nothing is known from another's question.
    let read = async |data: &[u8], certified: &[CodedBatch]| {
        let member = L1Client::connect(game.stage.config()).await.unwrap();
        member.would_give(data, certified.to_vec()).await.unwrap()
    };
    let certified: Vec<CodedBatch> = batches.iter().map(|batch| batch.batch.clone()).collect();
    let certified = certified.as_slice();
    let by_slashed = of(&batches, slashed).await;
    assert_eq!(read(&by_slashed, certified).await, Err(DataError::Mismatch), "the hints are wrong");
    assert_eq!(read(&of(&batches[1..], slashed).await, &certified[1..]).await, Ok(()), "here they are right");
    game.dispute(&game.stage.writer(USER).await, slashed.id, &wrong, 0).await.unwrap();
    game.stage.finalize().await;
    let gone = Err(DataError::Hints(slashed.id));
    assert_eq!(read(&by_slashed, certified).await, gone, "slashed");
    assert_eq!(read(&of(&batches[1..], slashed).await, &certified[1..]).await, gone);

    let publisher = game.publisher().await;
    let hints = post_hints(&game, &publisher, &HintPosting::of(&game.truth)).await;
    let data = of(&batches, hints).await;
    assert_eq!(read(&data, certified).await, Ok(()));
    assert_eq!(read(&data, &certified[..1]).await, Ok(()), "of what is asked for");
    // Compressed by another version, or with more haste: other bytes, the same content.
    let (front, frame) = data.split_at(2 + 3 * 8 + 4);
    let body = zstd::bulk::decompress(frame, 1 << 20).unwrap();
    let again = [front, &zstd::bulk::compress(&body, 1).unwrap()[..]].concat();
    assert_ne!(again, data.to_vec());
    assert_eq!(read(&again, certified).await, Ok(()));

    // One changed byte of the content, wherever it stands.
    let member = L1Client::connect(game.stage.config()).await.unwrap();
    for place in (0..body.len()).step_by(3) {
        let mut body = body.clone();
        body[place] ^= 1;
        let changed = [front, &zstd::bulk::compress(&body, 1).unwrap()[..]].concat();
        let judged = member.would_give(&changed, certified.to_vec()).await.unwrap();
        assert!(matches!(judged, Err(DataError::Mismatch | DataError::Decode(_))), "{place}: {judged:?}");
    }
    // Of other numbers, and of more than there are.
    assert_eq!(read(&data, &certified[1..]).await, Err(DataError::Mismatch));
    assert_eq!(read(&of(&batches[..1], hints).await, certified).await, Err(DataError::Mismatch));
    assert_eq!(read(&data, &[]).await, Err(DataError::Mismatch));
    // Hints that are not there, or not where it says.
    for (id, l1_block) in [(hints.id + 7, hints.l1_block), (hints.id, hints.l1_block + 1)] {
        let named = of(&batches, HintsReference { id, l1_block }).await;
        assert_eq!(read(&named, certified).await, Err(DataError::Hints(id)));
    }
    // Of another chain: nothing is opened then, and everything stands as it is.
    let of_other = poster.opened_data(CHAIN_ID, &batches, hints).await.unwrap().remove(0).data;
    assert_eq!(read(&of_other, certified).await, Ok(()));
    // A bomb, an unknown version, another kind, nothing.
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
    let bomb = [&front[..front.len() - 4], &(16u32 << 20).to_be_bytes()[..], &bomb].concat();
    assert_eq!(read(&bomb, certified).await, Err(DecodeError::Compressed.into()));
    let other = [&[3][..], &data[1..]].concat();
    assert_eq!(read(&other, certified).await, Err(DecodeError::Version(3).into()));
    let coded: Vec<CodedBatch> = batches.iter().map(|keyed| keyed.batch.clone()).collect();
    let raw = read(&RunData::of(&coded).encode(), certified).await;
    assert!(matches!(raw, Err(DataError::Decode(DecodeError::UnknownTag { value: 1, .. }))), "{raw:?}");
    assert!(matches!(read(&[], certified).await, Err(DataError::Decode(DecodeError::Short { .. }))));
}
