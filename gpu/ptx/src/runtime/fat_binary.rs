//! How nvcc keeps device code in a program.

/// What nvcc puts around a translation unit's device code.
#[repr(C)]
pub(super) struct Wrapper {
    magic: u32,
    version: u32,
    image: *const u8,
}

/// The text of the PTX in a fat binary.
///
/// # Safety
/// `wrapper` is one that nvcc made.
pub(super) unsafe fn text_of(wrapper: *const Wrapper) -> Result<String, &'static str> {
    // SAFETY: nvcc's own.
    let image = unsafe { (*wrapper).image };
    let number = |at: usize, bytes: usize| {
        // SAFETY: within the headers that the caller vouches for.
        let part = unsafe { std::slice::from_raw_parts(image.add(at), bytes) };
        crate::memory::read(part) as usize
    };
    let (header, whole) = (number(6, 2), number(8, 8));
    if number(0, 4) != 0xba55_ed50 {
        return Err("is none");
    }
    let mut at = header;
    while at < header + whole {
        let (kind, entry, bytes) = (number(at, 2), number(at + 4, 4), number(at + 8, 8));
        if kind == 1 {
            if number(at + 16, 4) != 0 {
                return Err("is compressed: compile with --no-compress");
            }
            // SAFETY: the entry's own bytes.
            let text = unsafe { std::slice::from_raw_parts(image.add(at + entry), bytes) };
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(bytes);
            return std::str::from_utf8(&text[..end])
                .map(str::to_owned)
                .map_err(|_| "has PTX that is no text");
        }
        at += entry + bytes;
    }
    Err("has no PTX")
}
