//! Each error is provoked, and says what happened.

mod common;

use blindfold_bte::bls::{self, BlsError};
use blindfold_bte::dealer::{self, DealError};
use blindfold_bte::{
    Backend, BatchError, CheckError, Ciphertext, CiphertextPoint, CombineError, Element, EncryptError,
    EncryptionKey, GtError, HintError, KeyError, MAX_BATCH, MAX_MEMBERS, MAX_MESSAGE_BYTES, MemberKey,
    MemberKeyError, Parameters, ParametersError, PointError, Portable, Proof, ProofError, Release,
    SessionKey, ShareError, SingletonError, UnknownBackend, by_name, verify_proof, verify_proofs,
};
use common::{IDENTITY_G1, batch, deal, inputs, off_subgroup, points, rng, shares};

const R: [u8; 32] = [
    0x73, 0xed, 0xa7, 0x53, 0x29, 0x9d, 0x7d, 0x48, 0x33, 0x39, 0xd8, 0x08, 0x09, 0xa1, 0xd8, 0x05, 0x53,
    0xbd, 0xa4, 0x02, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01,
];

fn splice(bytes: &[u8], at: usize, part: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + part.len()].copy_from_slice(part);
    out
}

// Offsets in a parameter file.
const MAX_BATCH_AT: usize = 9;
const MEMBERS_AT: usize = 13;
const THRESHOLD_AT: usize = 15;
const TAU_G1_AT: usize = 17;
const TAU2_G1_AT: usize = TAU_G1_AT + 48;
const EK_AT: usize = TAU2_G1_AT + 48;
const H_AT: usize = EK_AT + 576;

#[test]
fn parameter_files() {
    let (parameters, _) = deal(2, 3, 2, 1);
    let file = parameters.encode();
    let refuse = |bytes: &[u8]| Parameters::decode(bytes).expect_err("must be refused");
    let keys_at = H_AT + 3 * 96;

    assert_eq!(refuse(b""), ParametersError::Magic);
    assert_eq!(refuse(&splice(&file, 0, b"X")), ParametersError::Magic);
    assert_eq!(refuse(&splice(&file, 8, &[2])), ParametersError::Version(2));
    assert_eq!(refuse(&splice(&file, MAX_BATCH_AT, &[0; 4])), ParametersError::MaxBatch(0));
    let above = MAX_BATCH as u32 + 1;
    assert_eq!(refuse(&splice(&file, MAX_BATCH_AT, &above.to_be_bytes())), ParametersError::MaxBatch(above));
    assert_eq!(refuse(&splice(&file, MAX_BATCH_AT, &[0xff; 4])), ParametersError::MaxBatch(u32::MAX));
    assert_eq!(refuse(&splice(&file, MEMBERS_AT, &[0; 2])), ParametersError::Members(0));
    let above = MAX_MEMBERS + 1;
    assert_eq!(refuse(&splice(&file, MEMBERS_AT, &above.to_be_bytes())), ParametersError::Members(above));
    for threshold in [0, 4] {
        let want = ParametersError::Threshold { threshold, members: 3 };
        assert_eq!(refuse(&splice(&file, THRESHOLD_AT, &threshold.to_be_bytes())), want);
    }
    for length in [9, 12, 14, 16, 100, file.len() - 1] {
        assert!(
            matches!(refuse(&file[..length]), ParametersError::Length { actual, .. } if actual == length)
        );
    }
    let mut long = file.clone();
    long.push(0);
    assert_eq!(refuse(&long), ParametersError::Length { expected: file.len(), actual: file.len() + 1 });

    let point = |element, index, source| ParametersError::Point { element, index, source };
    let want = point(Element::PowersInG1, 0, PointError::NotInSubgroup);
    assert_eq!(refuse(&splice(&file, TAU_G1_AT, &off_subgroup())), want);
    let want = point(Element::PowersInG1, 1, PointError::Identity);
    assert_eq!(refuse(&splice(&file, TAU2_G1_AT, &IDENTITY_G1)), want);
    let mut identity = [0; 96];
    identity[0] = 0xc0;
    let want = point(Element::Powers, 2, PointError::Identity);
    assert_eq!(refuse(&splice(&file, H_AT + 2 * 96, &identity)), want);
    let want = point(Element::VerificationKeys, 5, PointError::NotCanonical);
    assert_eq!(refuse(&splice(&file, keys_at + 5 * 96, &[0; 96])), want);
    assert_eq!(want.to_string(), "verification key, index 5: not a canonical compressed point");
    let want = ParametersError::Key(KeyError::Element(GtError::NotInGroup));
    assert_eq!(refuse(&splice(&file, EK_AT, &[0; 576])), want);
}

#[test]
fn parameters_that_do_not_fit_together() {
    let ((one, _), (other, _)) = (deal(2, 3, 2, 1), deal(2, 3, 2, 2));
    let (file, foreign) = (one.encode(), other.encode());
    let check = |at: usize, length: usize| {
        let mixed = Parameters::decode(&splice(&file, at, &foreign[at..at + length])).expect("well-formed");
        assert_ne!(mixed.hash(), one.hash());
        mixed.check(&mut rng(3)).expect_err("must be refused")
    };
    one.check(&mut rng(3)).expect("honest");
    let keys_at = H_AT + 3 * 96;
    assert_eq!(check(TAU_G1_AT, 48), CheckError::Powers.into());
    assert_eq!(check(H_AT, 96), CheckError::Powers.into());
    assert_eq!(check(H_AT + 96, 96), CheckError::Powers.into());
    assert_eq!(check(TAU2_G1_AT, 48), CheckError::SquareInG1.into());
    assert_eq!(check(H_AT + 2 * 96, 96), CheckError::Gap.into());
    assert_eq!(check(EK_AT, 576), CheckError::EncryptionKey.into());
    for index in 0..6 {
        assert_eq!(check(keys_at + 96 * index, 96), CheckError::VerificationKeys.into());
    }
    // A threshold lower than the one the keys were shared with.
    let lowered = Parameters::decode(&splice(&file, THRESHOLD_AT, &[0, 1])).expect("well-formed");
    assert_eq!(lowered.check(&mut rng(3)), Err(CheckError::VerificationKeys.into()));
    // All of the other secret: consistent in itself, another hash.
    let whole = Parameters::decode(&foreign).expect("well-formed");
    whole.check(&mut rng(3)).expect("honest");
    assert_eq!(whole, other);
    assert_ne!(whole, one);
}

#[test]
fn encryption_keys_and_headers() {
    let (parameters, _) = deal(1, 1, 1, 1);
    let ek = parameters.encryption_key();
    let refuse = |bytes: &[u8; 576]| EncryptionKey::from_bytes(bytes).expect_err("must be refused");
    assert_eq!(refuse(&[0xff; 576]), GtError::NotCanonical.into());
    assert_eq!(refuse(&[0; 576]), GtError::NotInGroup.into());
    let mut one = [0; 576];
    one[47] = 1;
    assert_eq!(refuse(&one), KeyError::Identity);
    for window in [3, 17] {
        assert_eq!(
            EncryptionKey::with_window(&ek.to_bytes(), window).expect_err("refused"),
            KeyError::Window(window)
        );
    }
    let small = EncryptionKey::with_window(&ek.to_bytes(), 4).expect("allowed");
    assert!(small == ek && small.hash() == ek.hash());

    let header = |bytes: &[u8]| CiphertextPoint::try_from(bytes).expect_err("must be refused");
    assert_eq!(header(&[0x80; 47]), PointError::Length { expected: 48, actual: 47 });
    assert_eq!(header(&[0; 48]), PointError::NotCanonical);
    assert_eq!(header(&off_subgroup()), PointError::NotInSubgroup);
    assert_eq!(header(&IDENTITY_G1), PointError::Identity);
    let not_on_curve = (0..255).find_map(|x| {
        let mut bytes = [0; 48];
        (bytes[0], bytes[47]) = (0x80, x);
        CiphertextPoint::from_bytes(&bytes).err().filter(|error| *error == PointError::NotOnCurve)
    });
    assert_eq!(not_on_curve, Some(PointError::NotOnCurve));
}

#[test]
fn encryption_hints_and_proofs() {
    let (parameters, _) = deal(2, 1, 1, 1);
    let ek = parameters.encryption_key();
    let made = batch(&parameters, 2, 2).remove(1);
    // Zeroed memory that is never touched: the length is refused first.
    let long = vec![0; MAX_MESSAGE_BYTES + 1];
    let too_long = EncryptError::MessageTooLong(MAX_MESSAGE_BYTES + 1);
    assert_eq!(ek.encrypt(&made.ad, &long, b"", &mut rng(1)).err(), Some(too_long));
    assert_eq!(ek.encrypt_deterministic(&made.ad, &long, &made.key).err(), Some(too_long));

    let wrong = SessionKey::from_bytes([9; 16]);
    let open = |ciphertext: &Ciphertext, hint: &SessionKey| {
        let alone = ek.open_hint(&made.ad, ciphertext, hint);
        assert_eq!(ek.open_hints(&[(&made.ad, ciphertext, hint)])[0], alone);
        alone
    };
    assert_eq!(open(&made.ciphertext, &made.key), Ok(made.message.clone()));
    assert_eq!(open(&made.ciphertext, &wrong), Err(HintError::Header));
    let mut other = made.ciphertext.clone();
    other.d[3] ^= 4;
    assert_eq!(open(&other, &made.key), Err(HintError::MaskedKey));

    let verify = |ciphertext: &Ciphertext, proof: &Proof| {
        let alone = verify_proof(&made.ad, ciphertext, proof);
        let honest = (&made.ad, &made.ciphertext, &made.proof);
        let batch = verify_proofs(&mut rng(2), &[honest, (&made.ad, ciphertext, proof), honest]);
        assert!(batch[0].is_ok() && batch[2].is_ok());
        assert_eq!(batch[1], alone);
        alone.map(|point| point.to_bytes())
    };
    let proof = made.proof;
    assert_eq!(verify(&made.ciphertext, &proof), Ok(made.ciphertext.c));
    assert_eq!(verify(&other, &proof), Err(ProofError::Equation));
    let header = Ciphertext { c: off_subgroup(), ..made.ciphertext.clone() };
    assert_eq!(verify(&header, &proof), Err(ProofError::Header(PointError::NotInSubgroup)));
    // A commitment with a component of order 3 would pass a batch equation every third time.
    let commitment = Proof { r: off_subgroup(), ..proof };
    assert_eq!(verify(&made.ciphertext, &commitment), Err(ProofError::Commitment(PointError::NotInSubgroup)));
    assert_eq!(verify(&made.ciphertext, &Proof { s: R, ..proof }), Err(ProofError::Response));
    assert_eq!(verify(&made.ciphertext, &Proof { r: IDENTITY_G1, ..proof }), Err(ProofError::Equation));
    assert!(verify_proofs(&mut rng(2), &[]).is_empty() && ek.open_hints(&[]).is_empty());
}

#[test]
fn batches() {
    let ((parameters, keys), (others, _)) = (deal(3, 2, 2, 1), deal(3, 2, 2, 2));
    let backend = Portable::new(1);
    let made = batch(&parameters, 3, 3);
    let all = points(&made);
    let four = [all[0]; 4];
    let too_large = BatchError::TooLarge { batch: 4, max: 3 };
    let mut rng = rng(4);
    assert_eq!(backend.predecrypt(&parameters, &[]).err(), Some(BatchError::Empty));
    assert_eq!(backend.predecrypt(&parameters, &four).err(), Some(too_large));
    assert_eq!(backend.prepare(&parameters, 0), Err(BatchError::Empty));
    assert_eq!(backend.prepare(&parameters, 4), Err(too_large));
    assert_eq!(backend.prepare(&parameters, 3), Ok(()));
    assert_eq!(backend.release_share(&keys[0], &[]), Err(BatchError::Empty));
    assert_eq!(backend.release_share(&keys[0], &four), Err(too_large));
    assert_eq!(backend.invalid_shares(&mut rng, &parameters, &[], &[]), Err(BatchError::Empty));
    assert_eq!(backend.invalid_shares(&mut rng, &parameters, &four, &[]), Err(too_large));
    assert_eq!(backend.invalid_shares(&mut rng, &parameters, &all, &[(0, all[0].to_bytes())]), Ok(vec![0]));

    let release = parameters.combine(&shares(&keys, &all)).expect("enough");
    let predecrypted = backend.predecrypt(&parameters, &all).expect("within limits");
    let finalize = |parameters, inputs: &[_]| backend.finalize(parameters, &predecrypted, &release, inputs);
    assert_eq!(finalize(&others, &inputs(&made)), Err(BatchError::Parameters));
    assert_eq!(predecrypted.unblind(&others, &release), Err(BatchError::Parameters));
    assert_eq!(
        finalize(&parameters, &inputs(&made)[..2]),
        Err(BatchError::Length { expected: 3, actual: 2 })
    );
    let mut swapped = made.clone();
    swapped.swap(1, 2);
    assert_eq!(finalize(&parameters, &inputs(&swapped)), Err(BatchError::Header { position: 1 }));
    assert!(finalize(&parameters, &inputs(&made)).is_ok());
    assert!((predecrypted.len(), predecrypted.is_empty()) == (3, false));
    let decrypt = |points: &[_], inputs: &[_]| backend.decrypt(&parameters, points, &release, inputs);
    assert_eq!(decrypt(&[], &[]), Err(BatchError::Empty));
    assert_eq!(decrypt(&four, &inputs(&made)), Err(too_large));
    assert_eq!(decrypt(&all, &inputs(&made)[..2]), Err(BatchError::Length { expected: 3, actual: 2 }));
    assert_eq!(decrypt(&all, &inputs(&swapped)), Err(BatchError::Header { position: 1 }));
    assert!(decrypt(&all, &inputs(&made)).is_ok());
    assert_eq!(Release::from_bytes(&off_subgroup()), Err(PointError::NotInSubgroup));

    assert_eq!(by_name("abacus", 1).err(), Some(UnknownBackend::Name("abacus".to_owned())));
    let device = by_name("cuda", 1).err();
    assert_eq!(device, Some(UnknownBackend::Feature { name: "cuda", feature: "cuda" }));
    assert_eq!(
        by_name("portable", 2).map(|backend| (backend.name(), backend.threads())).ok(),
        Some(("portable", 2))
    );
}

#[test]
fn shares_and_singletons() {
    let (parameters, keys) = deal(3, 4, 3, 1);
    let all = points(&batch(&parameters, 3, 2));
    let honest = shares(&keys, &all);
    let mut rng = rng(5);
    let combine = |shares: &[(u16, [u8; 48])]| {
        let result = parameters.combine(shares);
        assert_eq!(parameters.combine_singletons(shares).err(), result.err());
        result.map(|release| release.to_bytes())
    };
    assert_eq!(combine(&honest), combine(&honest[1..]));
    assert_eq!(combine(&honest[..2]), Err(CombineError::TooFew { given: 2, needed: 3 }));
    for member in [0, 5] {
        let unknown = [honest[0], honest[1], (member, honest[2].1)];
        assert_eq!(combine(&unknown), Err(CombineError::UnknownMember { member, members: 4 }));
        let want = Err(ShareError::UnknownMember { member, members: 4 });
        assert_eq!(parameters.verify_share(member, &all, &honest[0].1), want);
        assert_eq!(parameters.verify_singleton_share(member, &all[0], &honest[0].1), want);
    }
    assert_eq!(combine(&[honest[0], honest[1], honest[0]]), Err(CombineError::Duplicate(1)));
    let source = PointError::NotInSubgroup;
    let broken = [honest[0], (2, off_subgroup()), honest[2]];
    assert_eq!(combine(&broken), Err(CombineError::Point { member: 2, source }));

    let verify = |share: &[u8; 48]| parameters.verify_share(2, &all, share);
    assert_eq!(verify(&honest[1].1), Ok(()));
    assert_eq!(verify(&honest[0].1), Err(ShareError::Mismatch { member: 2 }));
    assert_eq!(verify(&off_subgroup()), Err(ShareError::Point { member: 2, source }));
    let empty = parameters.verify_share(2, &[], &honest[1].1);
    assert_eq!(empty, Err(ShareError::Batch(BatchError::Empty)));

    let single = keys[1].singleton_share(&all[0]);
    assert_eq!(parameters.verify_singleton_share(2, &all[0], &single), Ok(()));
    let refused = parameters.verify_singleton_share(3, &all[0], &single);
    assert_eq!(refused, Err(ShareError::Mismatch { member: 3 }));
    let refused = parameters.verify_singleton_share(3, &all[0], &off_subgroup());
    assert_eq!(refused, Err(ShareError::Point { member: 3, source }));

    let release = |point| {
        let shares: Vec<_> = keys.iter().map(|key| (key.index(), key.singleton_share(point))).collect();
        parameters.combine_singletons(&shares).expect("enough")
    };
    let items = [
        (all[0], release(&all[0])),
        (all[1], off_subgroup()),
        (all[2], release(&all[2])),
        (all[1], release(&all[2])),
    ];
    let want = [Ok(()), Err(SingletonError::Point(source)), Ok(()), Err(SingletonError::Mismatch)];
    assert_eq!(Portable::new(2).verify_singletons(&mut rng, &parameters, &items), want);
    for ((point, pd), want) in items.iter().zip(want) {
        assert_eq!(parameters.verify_singleton(point, pd), want);
    }
    let ciphertext = Ciphertext { c: all[1].to_bytes(), d: [0; 16], e: vec![] };
    let refused = parameters.open_singleton(&[0; 32], &ciphertext, &off_subgroup());
    assert_eq!(refused, Err(SingletonError::Point(source)));
}

#[test]
fn member_keys_and_dealing() {
    let ((parameters, keys), (others, _)) = (deal(2, 3, 2, 1), deal(4, 3, 2, 1));
    let file = keys[1].encode();
    let refuse = |bytes: &[u8]| MemberKey::decode(bytes).expect_err("must be refused");
    assert_eq!(refuse(b"short"), MemberKeyError::Magic);
    assert_eq!(refuse(&splice(&file, 0, b"X")), MemberKeyError::Magic);
    assert_eq!(refuse(&splice(&file, 8, &[0])), MemberKeyError::Version(0));
    assert_eq!(refuse(&splice(&file, 9, &[0, 0])), MemberKeyError::Index(0));
    assert_eq!(refuse(&splice(&file, 9, &[1, 1])), MemberKeyError::Index(257));
    assert_eq!(refuse(&splice(&file, 11, &[0; 4])), MemberKeyError::MaxBatch(0));
    assert_eq!(refuse(&splice(&file, 11, &[0xff; 4])), MemberKeyError::MaxBatch(u32::MAX));
    assert_eq!(refuse(&file[..20]), MemberKeyError::Length { expected: file.len(), actual: 20 });
    assert_eq!(refuse(&splice(&file, 15 + 32, &R)), MemberKeyError::Share(2));
    assert_eq!(MemberKey::from_shares(1, &[]).err(), Some(MemberKeyError::MaxBatch(0)));
    assert_eq!(format!("{:?}", keys[1]), "MemberKey(2, redacted)");

    let mut rng = rng(2);
    assert_eq!(keys[1].check(&parameters, &mut rng), Ok(()));
    let mismatch = Err(MemberKeyError::Mismatch { index: 2 });
    assert_eq!(keys[1].check(&others, &mut rng), mismatch);
    let renumbered = MemberKey::decode(&splice(&file, 9, &[0, 3])).expect("well-formed");
    assert_eq!(renumbered.check(&parameters, &mut rng), Err(MemberKeyError::Mismatch { index: 3 }));
    let renumbered = MemberKey::decode(&splice(&file, 9, &[0, 4])).expect("well-formed");
    assert_eq!(renumbered.check(&parameters, &mut rng), Err(MemberKeyError::Mismatch { index: 4 }));

    let shape = |max_batch, members, threshold| {
        dealer::deal(max_batch, members, threshold, &mut common::rng(1)).err()
    };
    assert_eq!(shape(0, 1, 1), Some(ParametersError::MaxBatch(0).into()));
    assert_eq!(shape(1, 0, 0), Some(ParametersError::Members(0).into()));
    assert_eq!(shape(1, 2, 3), Some(ParametersError::Threshold { threshold: 3, members: 2 }.into()));
    let from = |tau: &[u8; 32], shares: &[Vec<[u8; 32]>]| dealer::from_secrets(2, 1, 1, tau, shares).err();
    let (one, row) = ([1; 32], vec![[1; 32]]);
    assert_eq!(from(&[0; 32], &[row.clone(), row.clone()]), Some(DealError::Secret));
    assert_eq!(from(&R, &[row.clone(), row.clone()]), Some(DealError::Secret));
    assert_eq!(from(&one, std::slice::from_ref(&row)), Some(DealError::Shares { power: 2 }));
    assert_eq!(from(&one, &[row.clone(), vec![]]), Some(DealError::Shares { power: 2 }));
    assert_eq!(from(&one, &[vec![R], row.clone()]), Some(DealError::Shares { power: 1 }));
    assert_eq!(from(&one, &[row.clone(), row]), None);
}

#[test]
fn bls_signatures() {
    let keys: Vec<_> = (0..4u8).map(|i| bls::SecretKey::generate(&[i; 32]).expect("32 bytes")).collect();
    let public: Vec<_> = keys.iter().map(bls::SecretKey::public_key).collect();
    let hash = [3; 32];
    let signatures: Vec<_> = keys.iter().map(|key| key.sign(&hash)).collect();
    for (key, signature) in public.iter().zip(&signatures) {
        assert_eq!(key.verify(&hash, signature), Ok(()));
        assert_eq!(key.verify(&[4; 32], signature), Err(BlsError::Invalid));
        assert_eq!(bls::PublicKey::from_bytes(&key.to_bytes()), Ok(*key));
        assert_eq!(bls::Signature::from_bytes(&signature.to_bytes()), Ok(*signature));
    }
    let sum = bls::aggregate(&signatures[..3]).expect("not empty");
    assert_eq!(bls::verify_aggregate(&public[..3], &hash, &sum), Ok(()));
    assert_eq!(bls::verify_aggregate(&public[1..], &hash, &sum), Err(BlsError::Invalid));
    assert_eq!(bls::verify_aggregate(&public, &hash, &sum), Err(BlsError::Invalid));
    assert_eq!(bls::verify_aggregate(&[], &hash, &sum), Err(BlsError::Empty));
    assert_eq!(bls::aggregate(&[]), Err(BlsError::Empty));

    let possession = keys[0].prove_possession();
    assert_eq!(public[0].verify_possession(&possession), Ok(()));
    assert_eq!(public[1].verify_possession(&possession), Err(BlsError::Invalid));
    assert_eq!(public[0].verify_possession(&signatures[0]), Err(BlsError::Invalid));

    assert_eq!(bls::SecretKey::generate(&[0; 31]).err(), Some(BlsError::KeyMaterial(31)));
    for bytes in [[0; 32], R] {
        assert_eq!(bls::SecretKey::from_bytes(&bytes).err(), Some(BlsError::SecretKey));
    }
    let again = bls::SecretKey::from_bytes(&keys[0].to_bytes()).expect("own encoding");
    assert_eq!(again.public_key(), public[0]);
    assert_eq!(format!("{again:?}"), "SecretKey(redacted)");
    let refuse = |bytes: &[u8; 48]| bls::Signature::from_bytes(bytes).expect_err("must be refused");
    assert_eq!(refuse(&off_subgroup()), BlsError::Signature(PointError::NotInSubgroup));
    assert_eq!(refuse(&IDENTITY_G1), BlsError::Signature(PointError::Identity));
    assert_eq!(refuse(&[0; 48]), BlsError::Signature(PointError::NotCanonical));
    let mut identity = [0; 96];
    identity[0] = 0xc0;
    let refused = bls::PublicKey::from_bytes(&identity).expect_err("must be refused");
    assert_eq!(refused, BlsError::PublicKey(PointError::Identity));

    // The x coordinates of both encodings, flags apart; EIP-2537 has c0 first, the compressed form c1.
    let (key, wide) = (public[0].to_bytes(), public[0].to_eip2537());
    assert_eq!((wide[..16].to_vec(), wide[64..80].to_vec()), (vec![0; 16], vec![0; 16]));
    assert_eq!(wide[16..64], key[48..96]);
    assert_eq!(wide[81..128], key[1..48]);
    assert_eq!(wide[80], key[0] & 0x1f);
    let (signature, wide) = (signatures[0].to_bytes(), signatures[0].to_eip2537());
    assert_eq!((wide[..16].to_vec(), wide[64..80].to_vec()), (vec![0; 16], vec![0; 16]));
    assert_eq!((wide[16], &wide[17..64]), (signature[0] & 0x1f, &signature[1..]));
}

#[test]
fn hints_of_several_chunks_give_each_its_own_verdict() {
    let (parameters, _) = deal(1, 1, 1, 1);
    let ek = parameters.encryption_key();
    let mut batch = batch(&parameters, 1, 3);
    let (good, count) = (batch.remove(0), 131);
    let mut other_mask = good.ciphertext.clone();
    other_mask.d[3] ^= 4;
    let wrong = SessionKey::from_bytes([9; 16]);
    let items: Vec<_> = (0..count)
        .map(|number| match number % 5 {
            1 => (&good.ad, &good.ciphertext, &wrong),
            3 => (&good.ad, &other_mask, &good.key),
            _ => (&good.ad, &good.ciphertext, &good.key),
        })
        .collect();
    for (number, result) in ek.open_hints(&items).into_iter().enumerate() {
        let want = match number % 5 {
            1 => Err(HintError::Header),
            3 => Err(HintError::MaskedKey),
            _ => Ok(good.message.clone()),
        };
        assert_eq!(result, want);
    }
}
