//! Numbers as typed: what is wrong with one, in words of the command and not of Rust.

use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command};

/// What is wrong with a whole number.
pub(crate) fn not_whole(error: &ParseIntError) -> String {
    match error.kind() {
        IntErrorKind::Empty => "give a whole number, as in 8",
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "the number is out of range",
        _ => "not a whole number, as 8 is",
    }
    .to_owned()
}

/// What is wrong with a number.
pub(crate) fn not_a_number(_: &ParseFloatError) -> String {
    "not a number, as 0.5 and 99 are".to_owned()
}

/// The same in the message of a parser of files, which names Rust's types.
pub(crate) fn in_plain_words(message: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("expected f64", "expected a number"),
        ("expected i64", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("floating point", "the number"),
        ("integer `", "the number `"),
    ];
    WORDS.iter().fold(message.to_owned(), |message, (from, to)| message.replace(from, to))
}

/// Lets every option take a negative number, so that it is refused as a number that is out of
/// range, and not as an option that there is none of.
pub(crate) fn may_be_negative(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_action() {
            ArgAction::Set | ArgAction::Append if !arg.is_positional() => {
                arg.allow_negative_numbers(true)
            }
            _ => arg,
        })
        .mut_subcommands(may_be_negative)
}

/// An error of the arguments, with its cause in words of the command.
pub(crate) fn in_words(error: clap::Error, command: &mut Command) -> clap::Error {
    let cause = error.source();
    let words = cause
        .and_then(|cause| cause.downcast_ref::<ParseIntError>().map(not_whole))
        .or_else(|| cause?.downcast_ref::<ParseFloatError>().map(not_a_number));
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(said)) => said.clone(),
        _ => String::new(),
    };
    let Some(words) = words.filter(|_| error.kind() == ErrorKind::ValueValidation) else {
        return error;
    };
    let (value, option) = (said(ContextKind::InvalidValue), said(ContextKind::InvalidArg));
    let message = format!("invalid value '{value}' for '{option}': {words}");
    command.error(ErrorKind::ValueValidation, StyledStr::from(message))
}
