//! Random numbers, the same for the same seed.

/// `SplitMix64`.
pub struct Random(u64);

impl Random {
    /// From the environment's `VITRINE_SEED`, or another one each time. Says which: whoever sees a test
    /// fail can have the same again.
    pub fn seeded(test: &str) -> Self {
        let given = std::env::var("VITRINE_SEED").ok();
        let now = || u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs());
        let seed = given.map_or_else(now, |seed| seed.parse().expect("a number"));
        println!("{test}: VITRINE_SEED={seed}");
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, without 1.
    pub fn fraction(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).expect("32 bits")) / f64::from(u32::MAX) * 0.999
    }
}
