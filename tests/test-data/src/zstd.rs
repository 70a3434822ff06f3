//! A zstd frame without compression (RFC 8878): the real files are compressed, and their readers
//! are tested, too.

const BLOCK: usize = 128 * 1024;

pub(crate) fn frame(bytes: &[u8]) -> Vec<u8> {
    // The magic number; one segment whose size is given in four bytes.
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    let size = u32::try_from(bytes.len()).unwrap_or_else(|_| panic!("too large to be reduced"));
    out.extend(size.to_le_bytes());
    let count = bytes.chunks(BLOCK).count();
    for (n, block) in bytes.chunks(BLOCK).enumerate() {
        let last = u32::from(n + 1 == count);
        let size = u32::try_from(block.len()).unwrap_or(0);
        // A raw block: type 0 in bits 1 and 2.
        out.extend(&(size << 3 | last).to_le_bytes()[..3]);
        out.extend(block);
    }
    out
}
