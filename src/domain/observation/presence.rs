//! Who was near: arrivals and departures of known people, and the number of unknown devices.
