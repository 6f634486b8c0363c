//! The nouns every stage speaks in: plain data, no I/O.
//!
//! In: nothing. Out: [`reading::Reading`] → [`observation`] → [`episode::Episode`], with ids, time,
//! coverage and the tables that decide importance and decay.
//!
//! This module imports nothing of ours and never touches a file, a socket or a thread. Only
//! [`time`] may read the clock.

pub mod coverage;
pub mod disposition;
pub mod episode;
pub mod fact;
pub mod id;
pub mod modality;
pub mod observation;
pub mod reading;
pub mod time;
pub mod tool;
