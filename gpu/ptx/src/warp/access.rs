//! Loads and stores.

use super::{Frame, Stop};
use crate::code::{Access, Register, Space};
use crate::decode::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::fault::Wrong;
use crate::grid::Machine;
use crate::lanes::{Mask, lanes_of};
use crate::shadow::{Way, Who};

impl Machine<'_> {
    #[inline(never)]
    pub(super) fn load(&mut self, access: &Access, frame: &mut Frame, lanes: Mask) -> Result<(), Stop> {
        let (bytes, way) =
            (access.kind.bytes(), if access.space == Space::ReadOnly { Way::ReadOnly } else { Way::Read });
        if let Some(address) = self.same_local_word(access, frame, lanes) {
            for (number, register) in access.values.iter().enumerate() {
                let value = *self.local.word(address + 4 * number as u64)?;
                if let Register::Word(to) = register {
                    frame.set_word(*to, &value, lanes);
                }
            }
            return Ok(());
        }
        for lane in lanes_of(lanes, self.backwards) {
            let address = frame.address(access.base, lane, access.offset);
            let whole = bytes * access.values.len();
            let place = self.place(access.space, lane, address, whole, way)?;
            for (number, register) in access.values.iter().enumerate() {
                let value = self.get(place.after(number * bytes), lane, bytes)?;
                frame.set(*register, lane, access.kind.extend(value));
            }
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn store(&mut self, access: &Access, frame: &mut Frame, lanes: Mask) -> Result<(), Stop> {
        let bytes = access.kind.bytes();
        if let Some(address) = self.same_local_word(access, frame, lanes) {
            for (number, register) in access.values.iter().enumerate() {
                if let Register::Word(from) = register {
                    self.local.word(address + 4 * number as u64)?.put(frame.word(*from), lanes);
                }
            }
            return Ok(());
        }
        for lane in lanes_of(lanes, self.backwards) {
            let address = frame.address(access.base, lane, access.offset);
            let whole = bytes * access.values.len();
            let place = self.place(access.space, lane, address, whole, Way::Write)?;
            for (number, register) in access.values.iter().enumerate() {
                self.put(place.after(number * bytes), lane, bytes, frame.get(*register, lane))?;
            }
        }
        Ok(())
    }

    /// The address in local memory where all lanes have words, if it is the same for all.
    fn same_local_word(&self, access: &Access, frame: &Frame, lanes: Mask) -> Option<u64> {
        let words = access.kind.bits == 32
            && access.values.iter().all(|register| matches!(register, Register::Word(_)));
        let mut all = lanes_of(lanes, false).map(|lane| frame.address(access.base, lane, access.offset));
        let first = all.next().filter(|_| words)?;
        let local = match access.space {
            Space::Local => first,
            Space::Generic => first.wrapping_sub(LOCAL_WINDOW),
            _ => return None,
        };
        let whole = 4 * access.values.len();
        let same =
            local >> 32 == 0 && local.is_multiple_of(whole as u64) && all.all(|address| address == first);
        same.then_some(local)
    }

    /// Where memory is that may be used in this way.
    #[inline(always)]
    pub(super) fn place(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        bytes: usize,
        way: Way,
    ) -> Result<Place, Wrong> {
        if !address.is_multiple_of(bytes as u64) {
            return Err(Wrong::Misaligned { lane, bytes, address });
        }
        let space = match (space, address >> 56) {
            (Space::Generic, 0x10) => Space::Local,
            (Space::Generic, 0x20) => Space::Shared,
            (Space::Generic, _) => Space::Global,
            (space, _) => space,
        };
        let offset = address & 0x00ff_ffff_ffff_ffff;
        let who = Who { thread: self.first_thread + lane as u32, time: self.time };
        match space {
            Space::Local => Ok(Place::Local(offset)),
            Space::Shared => {
                let offset = if address >> 56 == SHARED_WINDOW >> 56 { offset } else { address };
                if offset + bytes as u64 > self.shared.len() as u64 {
                    return Err(Wrong::Outside { lane, bytes, space: "shared", address });
                }
                self.shared_shadow.used(who, offset, bytes, way, way == Way::Read)?;
                Ok(Place::Shared(offset as usize))
            }
            _ => {
                if !self.may_use(address, bytes as u64) {
                    return Err(Wrong::Outside { lane, bytes, space: "global", address });
                }
                self.global_shadow.used(who, address, bytes, way, false)?;
                Ok(Place::Global(address))
            }
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, place: Place, lane: usize, bytes: usize) -> Result<u64, Wrong> {
        match place {
            Place::Local(address) => self.local.read(lane, address, bytes),
            Place::Shared(at) => Ok(crate::memory::read(&self.shared[at..at + bytes])),
            Place::Global(address) => {
                // SAFETY: `place` has looked that the launch may use this memory.
                let content = unsafe { std::slice::from_raw_parts(address as *const u8, bytes) };
                Ok(crate::memory::read(content))
            }
        }
    }

    #[inline(always)]
    pub(super) fn put(&mut self, place: Place, lane: usize, bytes: usize, value: u64) -> Result<(), Wrong> {
        let source = &value.to_le_bytes()[..bytes];
        match place {
            Place::Local(address) => self.local.write(lane, address, bytes, value)?,
            Place::Shared(at) => self.shared[at..at + bytes].copy_from_slice(source),
            // SAFETY: `place` has looked that the launch may use this memory.
            Place::Global(address) => unsafe {
                std::ptr::copy_nonoverlapping(source.as_ptr(), address as *mut u8, bytes);
            },
        }
        Ok(())
    }
}

/// Memory of one of the spaces.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Global(u64),
    Shared(usize),
    Local(u64),
}

impl Place {
    pub(super) fn after(self, bytes: usize) -> Self {
        match self {
            Self::Global(address) => Self::Global(address + bytes as u64),
            Self::Shared(at) => Self::Shared(at + bytes),
            Self::Local(address) => Self::Local(address + bytes as u64),
        }
    }
}
