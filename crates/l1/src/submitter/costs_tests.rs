use super::*;

const GWEI: u128 = 1_000_000_000;

fn prices(gas_gwei: u128, blob_gwei: u128) -> Prices {
    Prices { base_fee: gas_gwei * GWEI, tip: 0, blob_base_fee: Some(blob_gwei * GWEI) }
}

/// What a posting of one header with so many bytes of data would cost.
fn of_post(bytes: usize, prices: &Prices, stuck: Option<&Fees>) -> DataEstimate {
    let plan = |place| Plan::of_post(place, &[1; 1_000], 1, &vec![7; bytes]);
    DataEstimate::of(&plan(DataPlace::Calldata), &plan(DataPlace::Blobs), prices, stuck)
}

#[test]
fn calldata_is_priced_by_its_floor_where_little_is_computed() {
    let data = [vec![7; 100_000], vec![0; 10_000]].concat();
    assert_eq!(tokens(&data), 410_000);
    let load = |computed| Load { tokens: tokens(&data), computed, blobs: 0 };
    assert_eq!(load(0).gas(), 21_000 + 4_100_000);
    assert_eq!(load(200_000).gas(), 21_000 + 4_100_000, "10 a token, whatever is computed");
    assert_eq!(load(3_000_000).gas(), 21_000 + 1_640_000 + 3_000_000, "4 a token, and that");
    let nothing = Load::default();
    assert_eq!(nothing.gas(), PLAIN_GAS);
    let full = Load { tokens: u64::MAX, computed: u64::MAX, blobs: u64::MAX };
    assert_eq!(full.gas(), u64::MAX);
}

#[test]
fn blobs_are_paid_for_whole_and_calldata_by_the_byte() {
    // A blob holds 31 of 32 bytes, and the length.
    let [blob, two] = [126_972, 126_973].map(|bytes| {
        let Plan(loads) = Plan::of_data(DataPlace::Blobs, &vec![1; bytes]);
        loads.iter().map(|load| load.blobs).sum::<u64>()
    });
    assert_eq!((blob, two), (1, 2));
    // What does not fit one transaction is cut.
    let cut = |place, bytes| Plan::of_data(place, &vec![1; bytes]).0.len();
    assert_eq!(cut(DataPlace::Blobs, MAX_BLOB_DATA_BYTES + 1), 2);
    assert_eq!(cut(DataPlace::Calldata, POST_DATA_ROOM_BYTES), 1);
    assert_eq!(cut(DataPlace::Calldata, POST_DATA_ROOM_BYTES + 1), 2);
    // Headers go alone then.
    let Plan(loads) = Plan::of_post(DataPlace::Calldata, &[1; 1_000], 1, &vec![1; POST_DATA_ROOM_BYTES]);
    assert_eq!((loads.len(), loads[0].tokens), (2, 4_000));
}

#[test]
fn the_place_is_chosen_by_price_and_blobs_where_it_hardly_matters() {
    let place = |bytes, gas, blob| of_post(bytes, &prices(gas, blob), None).cheaper();
    assert_eq!(place(100_000, 10, 1), DataPlace::Blobs);
    assert_eq!(place(100_000, 1, 100), DataPlace::Calldata, "blobs are scarce");
    assert_eq!(place(100, 1, 1), DataPlace::Calldata, "a blob for a hundred bytes");
    assert_eq!(place(0, 1, 0), DataPlace::Blobs, "both cost the same");
    // A tenth is not much cheaper; three tenths are.
    let estimate = |calldata_wei| DataEstimate { calldata_wei, blobs_wei: Some(1_000) };
    assert_eq!([900, 801].map(|wei| estimate(wei).cheaper()), [DataPlace::Blobs; 2]);
    assert_eq!([800, 700, 0].map(|wei| estimate(wei).cheaper()), [DataPlace::Calldata; 3]);
}

#[test]
fn blobs_without_a_price_are_not_chosen() {
    let none = Prices { blob_base_fee: None, ..prices(10, 1) };
    let estimate = of_post(100_000, &none, None);
    assert_eq!((estimate.blobs_wei, estimate.cheaper()), (None, DataPlace::Calldata));
    assert!(estimate.calldata_wei > 0);
}

/// What is in the way of the other kind is replaced first.
#[test]
fn changing_the_kind_is_paid_for() {
    let prices = prices(1, 2);
    let stuck = |blob_fee| Fees { nonce: 1, max_fee: 1, tip: 1, blob_fee };
    let free = of_post(2_000, &prices, None);
    let with_blobs = of_post(2_000, &prices, Some(&stuck(Some(1))));
    assert_eq!(with_blobs.blobs_wei, free.blobs_wei);
    assert_eq!(with_blobs.calldata_wei - free.calldata_wei, (21_000 + 2 * 131_072) * GWEI);
    let plain = of_post(2_000, &prices, Some(&stuck(None)));
    assert_eq!(plain.calldata_wei, free.calldata_wei);
    assert_eq!(plain.blobs_wei, free.blobs_wei.map(|wei| wei + 21_000 * GWEI));
    assert_eq!((free.cheaper(), with_blobs.cheaper()), (DataPlace::Calldata, DataPlace::Blobs));
}

#[test]
fn costs_add_up_by_place() {
    use LayerName::{Archive, Blobs, Calldata};
    let mut costs = DataCosts::default();
    for (place, bytes, wei) in [(Blobs, 5, 7), (Calldata, 2, 3), (Archive, 9, 4), (Blobs, 1, 1)] {
        costs.add(place, bytes, wei);
    }
    assert_eq!(costs.blobs, PlaceCosts { transactions: 2, bytes: 6, wei: 8 });
    assert_eq!(costs.calldata, PlaceCosts { transactions: 1, bytes: 2, wei: 3 });
    assert_eq!(costs.archive, PlaceCosts { transactions: 1, bytes: 9, wei: 4 });
}
