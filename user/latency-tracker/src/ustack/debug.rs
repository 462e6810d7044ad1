// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The functions of stripped programs, from separate debug files.
//!
//! ```text
//!   mapped file, with build ID abcdef...  --->  /usr/lib/debug/.build-id/ab/cdef....debug: its symbol table
//! ```
//!
//! The owner of a program chooses its build ID, but must not choose what else is parsed: a debug file is read only if
//! it belongs to root, no other user may write to it, and it has that build ID. No DWARF is read.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blazesym::helper::{ElfResolver, read_elf_build_id};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer, TranslateFileOffset};
use nix::libc;

/// Where distributions install debug files by build ID.
const DIRECTORY: &str = "/usr/lib/debug/.build-id";

/// Number of bytes of a build ID. Linkers compute 8, 16 or 20, but the owner of a program may write any note.
const LENGTHS: RangeInclusive<usize> = 8..=64;

/// The name of a function, and the distance of an address from its start.
pub(super) type Symbol = (String, u64);

/// Returns the function that was found, if any. The error is a sentence.
pub(super) fn symbol(
    found: Result<Symbolized<'_>, blazesym::Error>,
) -> Result<Option<Symbol>, String> {
    match found {
        Ok(Symbolized::Sym(symbol)) => Ok(Some((symbol.name.into_owned(), symbol.offset as u64))),
        Ok(Symbolized::Unknown(_)) => Ok(None),
        Err(why) => Err(why.to_string()),
    }
}

/// Looks up the function at an offset of a mapped file in the debug file of that file. The error is a sentence: the
/// debug file exists, but must not or cannot be read.
pub(super) fn find(
    symbolizer: &Symbolizer,
    mapped: &Path,
    offset: u64,
) -> Result<Option<Symbol>, String> {
    let Some((id, address)) = linked(mapped, offset) else {
        return Ok(None);
    };
    let path = path_of(&id);
    let Some(file) = open(&path)? else {
        return Ok(None);
    };
    let opened = opened(&file);
    let has = read_elf_build_id(&opened).ok().flatten();
    if has.as_deref() != Some(id.as_slice()) {
        return Err(format!(
            "{} was not read: it lacks the build ID that is in its name",
            path.display()
        ));
    }
    let mut elf = Elf::new(opened);
    elf.debug_syms = false;
    let found = symbolizer.symbolize_single(&Source::Elf(elf), Input::VirtOffset(address));
    symbol(found).map_err(|why| format!("{}: {why}", path.display()))
}

/// The build ID of a mapped file, and the address for which the linker laid out the code at an offset. Both are from one
/// file, even if another one is mapped by now.
fn linked(mapped: &Path, offset: u64) -> Option<(Vec<u8>, u64)> {
    let file = File::open(mapped).ok()?;
    let opened = opened(&file);
    let id = read_elf_build_id(&opened).ok()??;
    let elf = ElfResolver::open(&opened).ok()?;
    let address = elf.file_offset_to_virt_offset(offset).ok()??;
    LENGTHS
        .contains(&id.len())
        .then(|| (id.into_owned(), address))
}

/// The path of the debug file for a build ID of at least one byte.
fn path_of(id: &[u8]) -> PathBuf {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (directory, name) = hex.split_at(2);
    Path::new(DIRECTORY).join(format!("{directory}/{name}.debug"))
}

/// Opens a debug file. Fails if a user other than root could have chosen the contents. The error is a sentence.
fn open(path: &Path) -> Result<Option<File>, String> {
    // A pipe in place of the file must not block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let meta = file.metadata();
    let meta = meta.map_err(|error| format!("{}: {error}", path.display()))?;
    if !meta.is_file() || meta.uid() != 0 || meta.mode() & 0o022 != 0 {
        return Err(format!(
            "{} was not read: it must be a file of root that no other user may write to",
            path.display()
        ));
    }
    Ok(Some(file))
}

/// A path that leads to an open file, whatever has replaced it meanwhile.
fn opened(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_build_id_is_the_name() {
        let path = path_of(&[0x0a, 0xbc, 0xde, 0x01]);
        assert_eq!(path, Path::new("/usr/lib/debug/.build-id/0a/bcde01.debug"));
    }

    #[test]
    fn a_file_that_other_users_control_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.debug");
        assert!(open(&path).unwrap().is_none());
        fs::write(&path, "x").unwrap();
        for mode in [0o664, 0o646] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let why = open(&path).unwrap_err();
            assert!(why.contains("a.debug was not read: it must be"), "{why}");
        }
        assert!(open(dir.path()).is_err());
    }

    #[test]
    fn a_file_that_is_no_program_has_no_debug_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        assert!(linked(&path, 0).is_none());
        fs::write(&path, "not a program").unwrap();
        assert!(linked(&path, 0).is_none());
        let found = find(&Symbolizer::new(), &path, 0);
        assert_eq!(found, Ok(None));
    }
}
