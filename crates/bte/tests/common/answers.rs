//! What one backend answers to every operation of the trait, on honest and on forged inputs, to be compared with what
//! the others answer.

use blindfold_bte::{
    Backend, BatchError, Ciphertext, CiphertextPoint, HintError, KnownBatch, KnownItem, MemberKey, Opening,
    Parameters, PointError, Proof, ProofError, SessionKey, SingletonError, SingletonItem,
};

use crate::common::{IDENTITY_G1, Made, off_subgroup, points, rng};

/// The answers to everything but decryption, which needs its steps in order.
#[derive(Debug, PartialEq)]
pub struct Answers {
    pub headers: Vec<Result<CiphertextPoint, PointError>>,
    pub wrong_releases: Result<Vec<usize>, BatchError>,
    pub messages: Vec<Result<Vec<u8>, HintError>>,
    pub proofs: Vec<Result<CiphertextPoint, ProofError>>,
    pub shares: Vec<Result<[u8; 48], BatchError>>,
    pub invalid: Result<Vec<u16>, BatchError>,
    pub singletons: Vec<Result<(), SingletonError>>,
    pub openings: Vec<Result<Opening, SingletonError>>,
}

/// The inputs of one comparison.
pub struct Questions<'a> {
    parameters: &'a Parameters,
    keys: &'a [MemberKey],
    points: Vec<CiphertextPoint>,
    hints: Vec<([u8; 32], Ciphertext, SessionKey)>,
    proofs: Vec<([u8; 32], Ciphertext, Proof)>,
    shares: Vec<(u16, [u8; 48])>,
    singletons: Vec<(CiphertextPoint, [u8; 48])>,
    openings: Vec<([u8; 32], Ciphertext, [u8; 48])>,
}

impl<'a> Questions<'a> {
    /// The batch as it is.
    pub fn honest(parameters: &'a Parameters, keys: &'a [MemberKey], batch: &[Made]) -> Self {
        let points = points(batch);
        let share = |key: &MemberKey| Some((key.index(), key.release_share(&points).ok()?));
        let singleton = |point: &CiphertextPoint| {
            let shares: Vec<_> = keys.iter().map(|key| (key.index(), key.singleton_share(point))).collect();
            (*point, parameters.combine_singletons(&shares).expect("enough"))
        };
        let singletons: Vec<(CiphertextPoint, [u8; 48])> = points.iter().map(singleton).collect();
        let opening = |(made, (_, pd)): (&Made, &(_, [u8; 48]))| (made.ad, made.ciphertext.clone(), *pd);
        let hint = |made: &Made| (made.ad, made.ciphertext.clone(), made.key.clone());
        Self {
            parameters,
            keys,
            hints: batch.iter().map(hint).collect(),
            proofs: batch.iter().map(|made| (made.ad, made.ciphertext.clone(), made.proof)).collect(),
            shares: keys.iter().filter_map(share).collect(),
            openings: batch.iter().zip(&singletons).map(opening).collect(),
            singletons,
            points,
        }
    }

    /// Adds every kind of forgery, made from the first and the last ciphertext.
    pub fn with_forgeries(mut self, batch: &[Made]) -> Self {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return self };
        self.forge_hints(first, last);
        self.forge_proofs(first, last);
        let singletons = self.singletons.clone();
        if let (Some(first), Some(last)) = (singletons.first(), singletons.last()) {
            for pd in [last.1, IDENTITY_G1, off_subgroup(), [0xff; 48], negative(first.1)] {
                self.singletons.push((first.0, pd));
            }
        }
        self.forge_openings();
        self.forge_shares();
        self
    }

    /// Malformed ciphertexts under their true release, wrong releases, and a header that is no point.
    fn forge_openings(&mut self) {
        let honest = self.openings.clone();
        let (Some(first), Some(last)) = (honest.first(), honest.last()) else { return };
        for pd in [last.2, IDENTITY_G1, off_subgroup(), negative(first.2)] {
            self.openings.push((first.0, first.1.clone(), pd));
        }
        for (ad, ciphertext, pd) in honest.iter().cycle().take(9) {
            let mut malformed = ciphertext.clone();
            malformed.d[0] ^= 1;
            self.openings.push((*ad, malformed, *pd));
        }
        for c in [off_subgroup(), IDENTITY_G1] {
            self.openings.push((first.0, Ciphertext { c, ..first.1.clone() }, first.2));
        }
    }

    /// The first member stays honest; then a point outside the subgroup, an opposite and another member's share.
    fn forge_shares(&mut self) {
        let honest = self.shares.clone();
        for (i, (_, share)) in self.shares.iter_mut().enumerate().skip(1) {
            *share = match i {
                1 => off_subgroup(),
                2 => negative(*share),
                _ => honest[i - 1].1,
            };
        }
        self.shares.extend([(0, honest[0].1), (99, honest[0].1), (1, IDENTITY_G1)]);
    }

    fn forge_hints(&mut self, first: &Made, last: &Made) {
        let wrong_key = SessionKey::from_bytes([0x77; 16]);
        let (mut d, mut e, mut c) =
            (last.ciphertext.clone(), last.ciphertext.clone(), last.ciphertext.clone());
        d.d[0] ^= 1;
        e.e.push(0);
        c.c = negative(c.c);
        self.hints.extend([
            (first.ad, first.ciphertext.clone(), wrong_key),
            (last.ad, d, last.key.clone()),
            (last.ad, e, last.key.clone()),
            (last.ad, c, last.key.clone()),
            ([0xee; 32], last.ciphertext.clone(), last.key.clone()),
        ]);
    }

    fn forge_proofs(&mut self, first: &Made, last: &Made) {
        let header = |c: [u8; 48]| (last.ad, Ciphertext { c, ..last.ciphertext.clone() }, last.proof);
        let proof = |r: [u8; 48], s: [u8; 32]| (first.ad, first.ciphertext.clone(), Proof { r, s });
        let Proof { r, s } = first.proof;
        let mut other_s = s;
        other_s[31] ^= 1;
        self.proofs.extend([
            header(off_subgroup()),
            header(IDENTITY_G1),
            header([0; 48]),
            header(negative(last.ciphertext.c)),
            proof(off_subgroup(), s),
            proof(IDENTITY_G1, s),
            proof(negative(r), s),
            proof([0xff; 48], s),
            proof(r, [0xff; 32]),
            proof(r, other_s),
            ([0xee; 32], first.ciphertext.clone(), first.proof),
        ]);
    }

    /// What `backend` says.
    pub fn ask(&self, backend: &dyn Backend) -> Answers {
        let mut rng = rng(42);
        let hints: Vec<_> = self.hints.iter().map(|(ad, ciphertext, key)| (ad, ciphertext, key)).collect();
        let proofs: Vec<_> =
            self.proofs.iter().map(|(ad, ciphertext, proof)| (ad, ciphertext, proof)).collect();
        let openings: Vec<_> = self
            .openings
            .iter()
            .map(|(ad, ciphertext, release)| SingletonItem { ad, ciphertext, release, blinding: None })
            .collect();
        let share = |key: &MemberKey| backend.release_share(key, &self.points);
        let headers: Vec<&[u8; 48]> = self.proofs.iter().map(|(_, ciphertext, _)| &ciphertext.c).collect();
        let alone = |(point, pd): &(CiphertextPoint, [u8; 48])| KnownBatch {
            release: *pd,
            items: vec![KnownItem::Closed(*point)],
        };
        let batches: Vec<_> = self.singletons.iter().map(alone).collect();
        Answers {
            headers: backend.decode_headers(&headers),
            wrong_releases: backend.wrong_releases(&mut rng, self.parameters, &batches),
            messages: backend.open_hints(&self.parameters.encryption_key(), &hints),
            proofs: backend.verify_proofs(&mut rng, &proofs),
            shares: self.keys.iter().map(share).collect(),
            invalid: backend.invalid_shares(&mut rng, self.parameters, &self.points, &self.shares),
            singletons: backend.verify_singletons(&mut rng, self.parameters, &self.singletons),
            openings: backend.open_singletons(&mut rng, self.parameters, &openings),
        }
    }
}

/// The encoding of the opposite point.
pub fn negative(mut point: [u8; 48]) -> [u8; 48] {
    point[0] ^= 0x20;
    point
}
