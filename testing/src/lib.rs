//! The testing ground.
