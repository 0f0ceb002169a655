//! What is said while it is done: results on standard output, one a line, and on standard error
//! what takes long.
//!
//! A reader of the results may stop early (`cargo xtask install | head`): the work is done
//! nevertheless. (`println!` would panic.)

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// A result, such as a path that is there now, or is not any more.
///
/// # Errors
/// If it cannot be written, and somebody is there to read it.
pub fn line(result: impl Display) -> io::Result<()> {
    to(&mut io::stdout(), result)
}

fn to(out: &mut impl Write, result: impl Display) -> io::Result<()> {
    match writeln!(out, "{result}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// What is begun now, or is wrong. If nobody can be told, so be it.
pub fn aside(what: impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// What is begun now.
pub(crate) fn begun(what: &str) {
    aside(format_args!("xtask: {what}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let (reader, mut out) = io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(out.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!(to(&mut out, "lib").is_ok());
        let mut full = &mut [0_u8; 2][..];
        assert!(to(&mut full, "lib").is_err());
    }
}
