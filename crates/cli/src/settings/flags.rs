//! Settings as flags. They are made from the table, so that a flag, its variable and its default can't come apart.

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches, builder::ValueParser};

use super::{Group, Setting, file, table};

/// What was said by flags, not yet checked: mistakes are told together with those of files and variables.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    /// What the command has to do with: together these have to make sense.
    pub groups: &'static [Group],
    said: BTreeMap<&'static str, String>,
}

impl Flags {
    pub fn said(&self, setting: &Setting) -> Option<&str> {
        self.said.get(setting.key).map(String::as_str)
    }

    #[cfg(test)]
    pub fn of(said: &[(&'static str, &str)]) -> Self {
        let said = said.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        Self { config: None, groups: Group::ALL, said }
    }

    fn add(command: Command, groups: &[Group]) -> Command {
        let config =
            Arg::new("config").long("config").value_name("FILE").value_parser(ValueParser::path_buf()).help(
                format!(
                    "Read settings from this file, instead of config.yaml in the data folder [env: {}]",
                    file::VARIABLE
                ),
            );
        table::all()
            .filter(|setting| groups.contains(&setting.group))
            .fold(command.arg(config), |command, setting| command.arg(flag(setting)))
    }

    fn read(matches: &ArgMatches, groups: &'static [Group]) -> Self {
        let mut said = BTreeMap::new();
        for setting in table::all().filter(|setting| groups.contains(&setting.group)) {
            let text = if setting.is_switch() {
                matches.get_flag(setting.key).then(|| "true".to_owned())
            } else {
                matches.get_one::<String>(setting.key).cloned()
            };
            said.extend(text.map(|text| (setting.key, text)));
        }
        Self { config: matches.get_one("config").cloned(), groups, said }
    }
}

fn flag(setting: &'static Setting) -> Arg {
    let mut help = format!("{} [env: {}]", setting.help, setting.variable);
    if let Some(default) = setting.default.filter(|_| !setting.is_switch()) {
        help.push_str(&format!(" [default: {default}]"));
    }
    let flag = Arg::new(setting.key).long(setting.flag).help(help);
    if setting.is_switch() { flag.action(ArgAction::SetTrue) } else { flag.value_name(setting.value) }
}

/// Makes the flags of some groups.
macro_rules! flags_of {
    ($($(#[$doc:meta])* $name:ident: $groups:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default)]
        pub struct $name(pub Flags);

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
                Ok(Self(Flags::read(matches, &$groups)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
                self.0 = Flags::read(matches, &$groups);
                Ok(())
            }
        }

        impl clap::Args for $name {
            fn augment_args(command: Command) -> Command {
                Flags::add(command, &$groups)
            }

            fn augment_args_for_update(command: Command) -> Command {
                Flags::add(command, &$groups)
            }
        }
    )*};
}

flags_of! {
    /// Of `ostler up`, which is both.
    UpFlags: [Group::Server, Group::Worker, Group::Shared, Group::Network, Group::Log];
    ServerFlags: [Group::Server, Group::Shared, Group::Log];
    WorkerFlags: [Group::Worker, Group::Link, Group::Shared, Group::Network, Group::Log];
    AllFlags: *Group::ALL;
}
