//! The words for kinds, so that a shell can complete them. Anything else passes: a name may stand there too, and a
//! mistake is told with the nearest kind by whoever reads it.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use ostler_spec::kinds;

#[derive(Debug, Clone, Copy)]
pub struct KindWords;

impl TypedValueParser for KindWords {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(kinds().map(|info| PossibleValue::new(info.plural).help(info.summary))))
    }
}
