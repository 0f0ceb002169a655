//! What is said while it is done: results on standard output, one a line, and on standard error
//! what takes long.
//!
//! A reader of the results may stop early (`cargo xtask install | head`): the work is done
//! nevertheless.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// A path that is there now, or is not any more.
///
/// # Errors
/// If it cannot be written, and somebody is there to read it.
pub fn path(path: &Path) -> io::Result<()> {
    to(&mut io::stdout(), path)
}

fn to(out: &mut impl Write, path: &Path) -> io::Result<()> {
    match writeln!(out, "{}", path.display()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// What is begun now.
pub(crate) fn begun(what: &str) {
    eprintln!("xtask: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let (reader, mut out) = io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(out.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!(to(&mut out, Path::new("lib")).is_ok());
        let mut full = &mut [0_u8; 2][..];
        assert!(to(&mut full, Path::new("lib")).is_err());
    }
}
