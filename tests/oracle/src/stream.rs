//! splitmix64: the bytes behind `seed:N`, and the only source of chance in here.

pub struct Stream {
    state: u64,
}

impl Stream {
    pub fn new(seed: u64) -> Self {
        Stream { state: seed }
    }

    pub fn step(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next `len` bytes; a new stream per tensor, so the cut in the last step never matters.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        for piece in out.chunks_mut(8) {
            piece.copy_from_slice(&self.step().to_le_bytes()[..piece.len()]);
        }
        out
    }

    /// 0 .. n - 1; the bias is of no interest here.
    pub fn below(&mut self, n: usize) -> usize {
        (self.step() % n as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
