//! The IP addresses that messages may be sent to. Resolves no name and opens no connection.
//!
//! Blocks: <https://www.iana.org/assignments/iana-ipv4-special-registry> and
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The networks that messages may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Public addresses by https, for a deployed server. A person who may write a channel must not reach what only the
    /// server can reach, such as the runtime API of Lambda on its loopback.
    Public,
    /// The local network too, also by http, for a server on a laptop. The people who write channels are in the same
    /// network.
    Local,
}

/// An address that the client may not connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{ip}, which is {block}; {allowed}")]
pub struct ForbiddenAddress {
    /// The address.
    pub ip: IpAddr,
    /// The purpose of the block that contains the address.
    pub block: &'static str,
    allowed: &'static str,
}

impl Reach {
    /// Checks that the client may connect to an address.
    ///
    /// An IPv6 address that stands for an IPv4 address, by mapping, NAT64 or ISATAP, is checked like the IPv4 address.
    /// Any other IPv6 address must be in `2000::/3`, where global addresses are, or in a local block if `self` allows
    /// those.
    pub fn check(self, ip: IpAddr) -> Result<(), ForbiddenAddress> {
        let found = match ip {
            IpAddr::V4(v4) => block_of_v4(v4, self),
            IpAddr::V6(v6) => block_of_v6(v6, self),
        };
        let allowed = match self {
            Self::Public => "a deployed server connects to public addresses only",
            Self::Local => "messages go to public addresses and to the local network only",
        };
        found.map_or(Ok(()), |block| Err(ForbiddenAddress { ip, block, allowed }))
    }
}

/// A block of addresses: first address, length of the prefix, purpose, and whether the block is local.
type Block<Ip> = (Ip, u32, &'static str, bool);

const fn v4(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

const fn v6(a: u16, b: u16, c: u16, d: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)
}

/// Addresses at which clouds give a machine its credentials. Only those are listed that a laptop could otherwise reach:
/// 169.254.169.254, the best-known one, is refused as link-local.
const METADATA: &str = "the metadata service of a cloud";

/// The blocks of special IPv4 addresses. The first block that contains an address decides.
const V4_BLOCKS: [Block<Ipv4Addr>; 21] = [
    (v4(100, 100, 100, 200), 32, METADATA, false),
    (v4(168, 63, 129, 16), 32, METADATA, false),
    (v4(0, 0, 0, 0), 8, "\"this network\"", false),
    (v4(10, 0, 0, 0), 8, "private", true),
    // Private networks over the internet, such as Tailscale, also use these addresses.
    (v4(100, 64, 0, 0), 10, "shared address space", true),
    (v4(127, 0, 0, 0), 8, "loopback", true),
    (v4(169, 254, 0, 0), 16, "link-local", false),
    (v4(172, 16, 0, 0), 12, "private", true),
    (v4(192, 0, 0, 0), 24, "for protocols", false),
    (v4(192, 0, 2, 0), 24, "for documentation", false),
    (v4(192, 31, 196, 0), 24, "for AS112", false),
    (v4(192, 52, 193, 0), 24, "for multicast tunnels", false),
    (v4(192, 88, 99, 0), 24, "for 6to4 relays", false),
    (v4(192, 168, 0, 0), 16, "private", true),
    (v4(192, 175, 48, 0), 24, "for AS112", false),
    (v4(198, 18, 0, 0), 15, "for benchmarks", false),
    (v4(198, 51, 100, 0), 24, "for documentation", false),
    (v4(203, 0, 113, 0), 24, "for documentation", false),
    (v4(224, 0, 0, 0), 4, "multicast", false),
    (v4(255, 255, 255, 255), 32, "broadcast", false),
    (v4(240, 0, 0, 0), 4, "reserved", false),
];

/// The blocks of special IPv6 addresses. The first block that contains an address decides. Teredo and 6to4 addresses
/// contain an IPv4 address too, but are always refused: no maker's server is reached by them.
const V6_BLOCKS: [Block<Ipv6Addr>; 20] = [
    (v6(0xfd00, 0xec2, 0, 0), 32, METADATA, false),
    (v6(0xfd20, 0xce, 0, 0), 32, METADATA, false),
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified", false),
    (Ipv6Addr::LOCALHOST, 128, "loopback", true),
    (Ipv6Addr::UNSPECIFIED, 96, "IPv4-compatible", false),
    (v6(0x64, 0xff9b, 1, 0), 48, "for a network's own NAT64", false),
    (v6(0x100, 0, 0, 0), 64, "for discarding", false),
    (v6(0x100, 0, 0, 1), 64, "a dummy prefix", false),
    (v6(0x2001, 0, 0, 0), 32, "Teredo", false),
    (v6(0x2001, 0, 0, 0), 23, "for protocols", false),
    (v6(0x2001, 0xdb8, 0, 0), 32, "for documentation", false),
    (v6(0x2002, 0, 0, 0), 16, "6to4", false),
    (v6(0x2620, 0x4f, 0x8000, 0), 48, "for AS112", false),
    (v6(0x3fff, 0, 0, 0), 20, "for documentation", false),
    (v6(0x5f00, 0, 0, 0), 16, "for segment routing", false),
    (v6(0xfc00, 0, 0, 0), 7, "unique-local", true),
    (v6(0xfe80, 0, 0, 0), 10, "link-local", false),
    (v6(0xfec0, 0, 0, 0), 10, "site-local", false),
    (v6(0xff00, 0, 0, 0), 8, "multicast", false),
    (Ipv6Addr::UNSPECIFIED, 0, "not given out", false),
];

/// The purpose of the block that forbids an IPv4 address; `None` if the address is allowed.
fn block_of_v4(ip: Ipv4Addr, reach: Reach) -> Option<&'static str> {
    let is_in = |(first, length, ..): &&Block<Ipv4Addr>| {
        (ip.to_bits() ^ first.to_bits()).checked_shr(32 - length).unwrap_or(0) == 0
    };
    forbidden(V4_BLOCKS.iter().find(is_in), reach)
}

/// The purpose of the block that forbids an IPv6 address; `None` if the address is allowed.
fn block_of_v6(ip: Ipv6Addr, reach: Reach) -> Option<&'static str> {
    let segments = ip.segments();
    if let Some(mapped) = ip.to_ipv4_mapped() {
        return block_of_v4(mapped, reach);
    }

    // RFC 6052, 3.1: the well-known prefix of NAT64 stands for public addresses only.
    if segments[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return block_of_v4(last_32_bits(ip), Reach::Public);
    }

    let is_in = |(first, length, ..): &&Block<Ipv6Addr>| {
        (ip.to_bits() ^ first.to_bits()).checked_shr(128 - length).unwrap_or(0) == 0
    };
    // RFC 4291, 2.4: global addresses are assigned from 2000::/3.
    let is_given_out = segments[0] >> 13 == 1;
    let found = V6_BLOCKS.iter().find(is_in).filter(|(_, length, ..)| *length > 0 || !is_given_out);
    // RFC 5214, 6.1: an ISATAP address may have any prefix.
    let is_isatap = segments[4] & !0x200 == 0 && segments[5] == 0x5efe;
    let embedded = is_isatap.then(|| block_of_v4(last_32_bits(ip), reach)).flatten();
    forbidden(found, reach).or(embedded)
}

fn forbidden<Ip>(block: Option<&Block<Ip>>, reach: Reach) -> Option<&'static str> {
    let (_, _, name, is_local) = block?;
    (reach == Reach::Public || !is_local).then_some(*name)
}

fn last_32_bits(ip: Ipv6Addr) -> Ipv4Addr {
    let octets = ip.octets();
    Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15])
}

#[cfg(test)]
mod tests {
    use domain::given::cases;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    /// The addresses before, first, last and behind in a block.
    fn ends(block: &str) -> [IpAddr; 4] {
        let (first, length) = block.split_once('/').expect("a block");
        let length: u32 = length.parse().expect("a length");
        match ip(first) {
            IpAddr::V4(first) => {
                let first = first.to_bits();
                let last = first | u32::MAX.checked_shr(length).unwrap_or(0);
                [first.wrapping_sub(1), first, last, last.wrapping_add(1)]
                    .map(|bits| Ipv4Addr::from_bits(bits).into())
            }
            IpAddr::V6(first) => {
                let first = first.to_bits();
                let last = first | u128::MAX.checked_shr(length).unwrap_or(0);
                [first.wrapping_sub(1), first, last, last.wrapping_add(1)]
                    .map(|bits| Ipv6Addr::from_bits(bits).into())
            }
        }
    }

    /// A case is an address, or the first and the last one of a block: public, local for a laptop only, or refused.
    #[test]
    fn each_address_is_allowed_where_its_case_says() {
        for case in cases(include_str!("address.txt")) {
            let ends = if case.given.contains('/') {
                ends(case.given)[1..3].to_vec()
            } else {
                vec![ip(case.given)]
            };
            for ip in ends {
                let allowed = (Reach::Public.check(ip).is_ok(), Reach::Local.check(ip).is_ok());
                let expected = match case.answer() {
                    "public" => (true, true),
                    "local" => (false, true),
                    "refused" => (false, false),
                    unknown => panic!("{unknown}"),
                };
                assert_eq!(allowed, expected, "{case}: {ip}");
            }
        }
    }

    #[test]
    fn the_neighbours_of_private_blocks_are_public() {
        for block in ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"] {
            let [before, .., behind] = ends(block);
            for ip in [before, behind] {
                assert_eq!(Reach::Public.check(ip), Ok(()), "{block}: {ip}");
            }
        }
    }

    #[test]
    fn the_reason_names_the_address_the_block_and_what_is_allowed() {
        let text = |reach: Reach, address: &str| reach.check(ip(address)).unwrap_err().to_string();
        assert_eq!(
            text(Reach::Public, "127.0.0.1"),
            "127.0.0.1, which is loopback; a deployed server connects to public addresses only"
        );
        assert_eq!(
            text(Reach::Local, "fe80::1"),
            "fe80::1, which is link-local; messages go to public addresses and to the local network only"
        );
        assert_eq!(Reach::Public.check(ip("::ffff:10.1.2.3")).unwrap_err().block, "private");
    }
}
