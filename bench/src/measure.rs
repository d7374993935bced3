//! The measurements, one file each.

pub mod command;
pub mod first_call;
pub mod floors;
pub mod gateway;
pub mod history;
pub mod journal;
pub mod loop_step;
pub mod shared;
pub mod start_up;
pub mod three_steps;

use std::path::PathBuf;

use crate::settings::Settings;
use floors::Floors;

/// What every measurement works with.
pub struct Bench {
    pub settings: Settings,
    pub binary: PathBuf,
    pub floors: Floors,
}
