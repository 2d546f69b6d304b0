//! A new file, which has its name only when it is a whole database.
//!
//! A process may be killed while it creates the file, and `redb` refuses a part of one. So the database is
//! created under another name, and then linked to its own. The link fails if another process was faster.

use ::redb::{Database, Error};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

const EMPTY: &str = "the file is empty: expected a database, or no file";

/// Opens a database, or creates it.
pub(super) fn open_or_create(path: &Path) -> Result<Database, Error> {
    match fs::metadata(path) {
        // What is left of a file that was cut off would become a store without jobs.
        Ok(found) if found.len() == 0 => return Err(Error::Io(io::Error::other(EMPTY))),
        Ok(_) => {}
        Err(_) => create(path)?,
    }
    Ok(Database::create(path)?)
}

fn create(path: &Path) -> Result<(), Error> {
    let new = name_beside(path);
    let created = Database::create(&new).map(drop);
    let linked = created.map_err(Error::from).map(|()| fs::hard_link(&new, path));
    let removed = fs::remove_file(&new);
    if linked?.is_ok() {
        removed?;
    } else {
        Database::create(path)?; // the file system has no links, or another process was faster
    }
    Ok(synchronize_folder(path)?)
}

/// A name in the same folder that no other process uses, not even one of the same number in another
/// container.
fn name_beside(path: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}.new", process::id(), now.as_nanos()));
    name.into()
}

/// Makes the file's name survive a crash of the machine.
fn synchronize_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(()); // a folder cannot be opened
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
