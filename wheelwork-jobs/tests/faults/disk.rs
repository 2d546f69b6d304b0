//! A disk in memory that loses what was not synced, or is full.

use redb::StorageBackend;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What is there after a crash for sure.
    synced: Vec<u8>,
    /// The writes since the last sync.
    unsynced: Vec<Write>,
    room: Option<usize>,
    failed: bool,
}

#[derive(Clone, Debug)]
enum Write {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

/// A torn write leaves whole sectors.
const SECTOR: usize = 512;

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The disk after a crash now: of the writes since the last sync, any sectors have arrived.
    pub fn crashed(&self) -> Disk {
        let state = self.state();
        let mut bytes = state.synced.clone();
        for write in &state.unsynced {
            match write {
                Write::Length(length) => bytes.resize(*length, 0),
                Write::Bytes(at, data) => {
                    for (i, sector) in data.chunks(SECTOR).enumerate() {
                        let begin = at + i * SECTOR;
                        let end = begin + sector.len();
                        if fastrand::bool() && end <= bytes.len() {
                            bytes[begin..end].copy_from_slice(sector);
                        }
                    }
                }
            }
        }
        let state = State { seen: bytes.clone(), synced: bytes, ..State::default() };
        Disk(Arc::new(Mutex::new(state)))
    }

    /// Lets each write fail from now on.
    pub fn fail(&self) {
        self.state().failed = true;
    }

    /// Lets the disk grow to this many bytes more, and not beyond.
    pub fn set_room(&self, more: Option<usize>) {
        let mut state = self.state();
        state.room = more.map(|more| state.seen.len() + more);
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let begin = usize::try_from(offset).unwrap();
        let state = self.state();
        let bytes = state.seen.get(begin..begin + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).unwrap();
        let mut state = self.state();
        if state.failed || state.room.is_some_and(|room| length > room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.seen.resize(length, 0);
        state.unsynced.push(Write::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.synced = state.seen.clone();
        state.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let begin = usize::try_from(offset).unwrap();
        let mut state = self.state();
        let end = begin + data.len();
        if state.failed || end > state.seen.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.seen[begin..end].copy_from_slice(data);
        state.unsynced.push(Write::Bytes(begin, data.to_vec()));
        Ok(())
    }
}
