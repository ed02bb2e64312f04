use alloy_primitives::{Address, Bytes};
use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::invoice::MAX_LINES;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use super::*;

const SEED: u64 = 12;

fn invoicing(chain_id: u64) -> Invoicing {
    let public = PublicPolynomial::new(&Parameters::balance().unwrap(), &[1; 32]).unwrap();
    let auditor = SecretKey::derive(&public, &[2; 32]).public_key();
    let domain = Domain { l1_chain_id: 1, chain_id, contract: Address::repeat_byte(3) };
    let settings = Settings::new(domain, &public, &auditor, Address::ZERO, 0).unwrap();
    Invoicing::new(&settings, B256::repeat_byte(1)).unwrap()
}

fn payer() -> SigningKey {
    SigningKey::from_bytes(&[7; 32]).unwrap()
}

/// An order of these lines and the prices for it.
fn both(invoicing: &Invoicing, ordered: &str, priced: &str) -> (Order, PriceList) {
    println!("seed {SEED}");
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let order = invoicing.order(&payer(), &Lines::parse(ordered).unwrap(), &mut rng).unwrap();
    let prices = invoicing.prices(&order, &Lines::parse(priced).unwrap(), &mut rng).unwrap();
    (order, prices)
}

/// As it comes out of a file.
fn filed<T: serde::Serialize + serde::de::DeserializeOwned>(document: &T) -> T {
    serde_json::from_str(&serde_json::to_string(document).unwrap()).unwrap()
}

#[test]
fn what_was_ordered_is_priced_totalled_verified_and_opened() {
    let invoicing = invoicing(5);
    // The list has its own order, and more than was ordered.
    let (order, prices) =
        both(&invoicing, "nuts, M8,3\nbolts,400\n", "# base units\nbolts, 25\nwasher,9\n\nnuts, M8, 1999\n");
    let (order, prices) = (filed(&order), filed(&prices));
    assert_eq!(order.lines, ["nuts, M8", "bolts"]);
    let total = filed(&invoicing.compute(&order, &prices).unwrap());
    invoicing.verify(&order, &prices, &total).unwrap();
    assert_eq!(invoicing.open(&payer(), &order, &total).unwrap(), 3 * 1999 + 400 * 25);
    assert!(!format!("{prices:?}").contains(&prices.mask_seed.to_string()));
}

#[test]
fn the_largest_invoice_is_exact() {
    let invoicing = invoicing(5);
    let lines = |number: u64| (0..MAX_LINES).map(|line| format!("{line},{number}\n")).collect::<String>();
    let (order, prices) = both(&invoicing, &lines(u16::MAX.into()), &lines(u32::MAX.into()));
    let total = invoicing.compute(&order, &prices).unwrap();
    let expected = MAX_LINES as u64 * u64::from(u16::MAX) * u64::from(u32::MAX);
    assert_eq!(invoicing.open(&payer(), &order, &total).unwrap(), expected);
    let many = Lines::parse(&(0..=MAX_LINES).map(|line| format!("{line},1\n")).collect::<String>()).unwrap();
    let refused = invoicing.order(&payer(), &many, &mut ChaCha20Rng::seed_from_u64(SEED)).unwrap_err();
    assert!(refused.to_string().contains("257 lines"), "{refused}");
}

#[test]
fn verifying_names_what_differs() {
    let invoicing = invoicing(5);
    let (order, prices) = both(&invoicing, "a,1\nb,2", "a,3\nb,4");
    let total = invoicing.compute(&order, &prices).unwrap();
    let other = |bytes: &Bytes| {
        let mut bytes = bytes.to_vec();
        bytes[1000] ^= 1;
        Bytes::from(bytes)
    };
    let named = |order: &Order, prices: &PriceList, total: &Total| match invoicing
        .verify(order, prices, total)
        .unwrap_err()
    {
        InvoiceDocumentError::OtherPart { what, .. } => what,
        InvoiceDocumentError::OtherTotal { .. } => "total",
        other => panic!("{other}"),
    };
    let changed = Order { key: other(&order.key), ..order.clone() };
    assert_eq!(named(&changed, &prices, &total), "keys");
    let changed = Order { quantities: other(&order.quantities), ..order.clone() };
    assert_eq!(named(&changed, &prices, &total), "quantities");
    let changed = Order { lines: vec!["b".into(), "a".into()], ..order.clone() };
    assert_eq!(named(&changed, &prices, &total), "quantities");
    let changed = PriceList { prices: other(&prices.prices), ..prices.clone() };
    assert_eq!(named(&order, &changed, &total), "prices");
    let changed = PriceList { mask_seed: B256::ZERO, ..prices.clone() };
    assert_eq!(named(&order, &changed, &total), "prices");
    let changed = Total { total: other(&total.total), ..total.clone() };
    assert_eq!(named(&order, &prices, &changed), "total");
    // The payer notices what is for another order, and what cannot be a total of his quantities.
    let opened = invoicing.open(&payer(), &order, &changed).unwrap_err();
    assert!(matches!(opened, InvoiceDocumentError::Part { error: InvoiceError::Message, .. }), "{opened}");
    let (elsewhere, _) = both(&invoicing, "a,1\nb,3", "a,3\nb,4");
    let opened = invoicing.open(&payer(), &elsewhere, &total).unwrap_err();
    assert!(matches!(opened, InvoiceDocumentError::OtherPart { .. }), "{opened}");
    let refused = invoicing.compute(&elsewhere, &prices).unwrap_err();
    assert!(matches!(refused, InvoiceDocumentError::OtherOrder { .. }), "{refused}");
}

#[test]
fn another_wallet_and_another_deployment_open_nothing() {
    let here = invoicing(5);
    let (order, prices) = both(&here, "a,1", "a,3");
    let total = here.compute(&order, &prices).unwrap();
    let stranger = SigningKey::from_bytes(&[8; 32]).unwrap();
    assert!(matches!(here.open(&stranger, &order, &total), Err(InvoiceDocumentError::OtherWallet)));
    assert!(matches!(invoicing(6).open(&payer(), &order, &total), Err(InvoiceDocumentError::OtherWallet)));
    let mut malformed = order.clone();
    malformed.key = Bytes::new();
    let refused = here.prices(&malformed, &Lines::parse("a,1").unwrap(), &mut ChaCha20Rng::seed_from_u64(1));
    assert!(refused.unwrap_err().to_string().starts_with("the order's key: "));
}

#[test]
fn two_orders_have_two_keys() {
    let invoicing = invoicing(5);
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let lines = Lines::parse("a,1").unwrap();
    let [one, two] = [0, 1].map(|_| invoicing.order(&payer(), &lines, &mut rng).unwrap());
    assert!(one.salt != two.salt && one.key != two.key && one.hash() != two.hash());
}

#[test]
fn each_wrong_line_is_named() {
    let parse = |text: &str| Lines::<u16>::parse(text).map(drop).unwrap_err();
    assert_eq!(parse("# nothing\n\n"), LinesError::Empty);
    assert_eq!(parse("a,1\nb 2"), LinesError::Form { line: 2 });
    assert_eq!(parse("a,1\n ,2"), LinesError::Form { line: 2 });
    for wrong in ["a,65536", "a,-1", "a,1.5", "a,", "a,1 2"] {
        assert_eq!(parse(wrong), LinesError::Number { line: 1, name: "a".into(), largest: 65_535 });
    }
    assert_eq!(parse("a,1\n\na , 2"), LinesError::Twice { line: 3, name: "a".into() });
    assert!(Lines::<u32>::parse("a,4294967295").is_ok() && Lines::<u32>::parse("a,4294967296").is_err());
    let prices = Lines::<u32>::parse("a,1\nb,2").unwrap();
    let missing = prices.of(&["b".into(), "c".into()]).unwrap_err();
    assert_eq!(missing, LinesError::NoPrice { line: 2, name: "c".into() });
    assert_eq!(missing.to_string(), "the order's line 2, `c`, has no price");
}
