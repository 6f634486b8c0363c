//! Where gpsd listens, as people write it.

use std::fmt;

/// gpsd's registered port.
const PORT_DEFAULT: u16 = 2947;

/// A host and a port. Prints as `host:port`, an IPv6 address in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Address {
    /// Reads `host`, `host:port`, `::1` or `[::1]:port`. The error goes behind the key's name.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("is {text:?}; write HOST:PORT, for example 127.0.0.1:{PORT_DEFAULT}");
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
                (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(wrong)?) })
            }
            // More than one colon without brackets is an IPv6 address without a port.
            None if text.matches(':').count() > 1 => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|&port| port != 0).ok_or_else(wrong)?,
            None => PORT_DEFAULT,
        };
        let is_host = |character: char| character.is_alphanumeric() || matches!(character, '.' | '-' | '_' | ':' | '%');
        match !host.is_empty() && host.chars().all(is_host) {
            true => Ok(Self { host: host.to_owned(), port }),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_in_all_its_forms() {
        for (text, printed) in [
            ("127.0.0.1:2947", "127.0.0.1:2947"),
            ("gps.local", "gps.local:2947"),
            (" gps.local:3000 ", "gps.local:3000"),
            ("::1", "[::1]:2947"),
            ("[::1]", "[::1]:2947"),
            ("[fe80::1%eth0]:3000", "[fe80::1%eth0]:3000"),
        ] {
            assert_eq!(Address::parse(text).map(|address| address.to_string()), Ok(printed.to_owned()));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for text in
            ["", ":2947", "host:", "host:0", "host:70000", "host:gps", "[::1", "[::1]2947", "a b:1", "gpsd://x:1"]
        {
            let error = Address::parse(text).unwrap_err();
            assert!(error.contains("127.0.0.1:2947"), "{error}");
        }
    }
}
