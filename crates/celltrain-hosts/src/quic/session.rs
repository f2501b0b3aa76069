//! QUIC without cryptography, as a replacement for TLS 1.3 (RFC 9001).
//!
//! The handshake has the same flights as TLS with X25519, AES-128-GCM and one certificate of [`CERTIFICATE`] bytes,
//! with the same lengths. Keys have no effect, and tags of packets are zeros. The only real content of a flight is the
//! transport parameters, because QUIC reads nothing else.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use celltrain_core::fingerprint::Fingerprint;
use celltrain_core::rng::Stream;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair,
    Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Length of the server's certificate.
const CERTIFICATE: usize = 1000;

// Lengths of flights without transport parameters, including message headers (RFC 8446).
const CLIENT_HELLO: usize = 172;
const SERVER_HELLO: usize = 90;
/// Encrypted extensions, certificate, its ECDSA signature, and the end of the handshake.
const SERVER_REST: usize = 19 + (13 + CERTIFICATE) + 79 + FINISHED;
const FINISHED: usize = 36;

/// A flight begins with its own length and the length of its transport parameters.
const LENGTHS: usize = 4;

/// Limits of AES-128-GCM (RFC 9001, 6.6), in packets.
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
const INTEGRITY_LIMIT: u64 = 1 << 52;
/// Length of the tag and of the sample in AES-128-GCM.
const TAG: usize = 16;

/// Creates sessions.
pub(super) struct NoTls;

impl ClientConfig for NoTls {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Handshake::new(Side::Client, parameters)))
    }
}

impl ServerConfig for NoTls {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; TAG]
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(Handshake::new(Side::Server, parameters))
    }
}

/// State of the handshake at one end.
struct Handshake {
    side: Side,
    /// Transport parameters of this end of the connection, encoded.
    parameters: Vec<u8>,
    /// Transport parameters of the other end of the connection, once they have arrived.
    others: Option<Vec<u8>>,
    /// Bytes of a flight that has arrived only in part.
    unread: Vec<u8>,
    /// Number of flights that have arrived.
    arrived: u8,
    /// Number of completed steps of this end.
    done: u8,
}

impl Handshake {
    fn new(side: Side, parameters: &TransportParameters) -> Self {
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        Self { side, parameters: encoded, others: None, unread: Vec::new(), arrived: 0, done: 0 }
    }
}

/// Appends a flight with a length of `length` bytes plus its transport parameters.
fn write_flight(length: usize, parameters: &[u8], out: &mut Vec<u8>) {
    let total = length + parameters.len();
    for length in [total, parameters.len()] {
        out.extend(u16::try_from(length).expect("a flight of the handshake is below 65,536 bytes").to_be_bytes());
    }
    out.extend(parameters);
    out.resize(out.len() + total - LENGTHS - parameters.len(), 0);
}

/// Returns the transport parameters of the first flight in `bytes` and the flight's length, if the flight is complete.
fn read_flight(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let length = |at: usize| Some(usize::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let (total, parameters) = (length(0)?, length(2)?);
    Some((bytes.get(..total)?.get(LENGTHS..LENGTHS + parameters)?, total))
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.arrived < 2
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.unread.extend(bytes);
        while let Some((parameters, length)) = read_flight(&self.unread) {
            self.arrived += 1;
            if !parameters.is_empty() {
                self.others = Some(parameters.to_vec());
            }
            self.unread.drain(..length);
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = |mut bytes: &[u8]| TransportParameters::read(self.side, &mut bytes);
        Ok(self.others.as_deref().map(read).transpose()?)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let keys = match (self.side, self.done, self.arrived) {
            (Side::Client, 0, _) => {
                write_flight(CLIENT_HELLO, &self.parameters, out);
                None
            }
            (Side::Client, 1, 1..) => Some(keys()),
            (Side::Client, 2, 2..) => {
                write_flight(FINISHED, &[], out);
                Some(keys())
            }
            (Side::Server, 0, 1..) => {
                write_flight(SERVER_HELLO, &[], out);
                Some(keys())
            }
            (Side::Server, 1, 1..) => {
                write_flight(SERVER_REST, &self.parameters, out);
                Some(keys())
            }
            _ => return None,
        };
        self.done += 1;
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(pair(|| Box::new(NoKey) as Box<dyn PacketKey>))
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// A key that does not change data.
pub(super) struct NoKey;

fn keys() -> Keys {
    Keys {
        header: pair(|| Box::new(NoKey) as Box<dyn HeaderKey>),
        packet: pair(|| Box::new(NoKey) as Box<dyn PacketKey>),
    }
}

fn pair<T>(make: impl Fn() -> T) -> KeyPair<T> {
    KeyPair { local: make(), remote: make() }
}

impl HeaderKey for NoKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl PacketKey for NoKey {
    fn encrypt(&self, packet: u64, data: &mut [u8], _: usize) {
        // Headers contain only the lowest bytes of a packet's number, and the tag shows whether the receiver has found
        // the right number. The space for the tag already exists.
        let (_, tag) = data.split_last_chunk_mut::<TAG>().expect("every packet has room for a tag");
        *tag = tag_of(packet);
    }

    fn decrypt(&self, packet: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let (data, tag) = payload.split_last_chunk::<TAG>().ok_or(CryptoError)?;
        let (length, is_right) = (data.len(), *tag == tag_of(packet));
        payload.truncate(length);
        is_right.then_some(()).ok_or(CryptoError)
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

/// Returns the authentication tag of a packet, which is its number.
fn tag_of(packet: u64) -> [u8; TAG] {
    u128::from(packet).to_le_bytes()
}

/// Creates the tokens with which an end may reset a connection. They differ from each other and from the tags of packets.
impl HmacKey for NoKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let mut fingerprint = Fingerprint::default();
        fingerprint.fold_all(data.iter().map(|&byte| u64::from(byte)));
        let mut bytes = Stream::new(fingerprint.value(), "signature");
        signature.fill_with(|| bytes.next_u64().to_le_bytes()[0]);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = [0; 32];
        self.sign(data, &mut own);
        if own == signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for NoKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(NoKey)
    }
}

impl AeadKey for NoKey {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend([0; TAG]);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quic_reads_the_data_of_a_handshake_flight_only_when_the_flight_has_arrived_completely() {
        let mut flight = Vec::new();
        write_flight(CLIENT_HELLO, b"parameters", &mut flight);
        write_flight(FINISHED, &[], &mut flight);
        assert_eq!(flight.len(), CLIENT_HELLO + 10 + FINISHED);
        assert_eq!(read_flight(&flight[..CLIENT_HELLO + 9]), None);
        assert_eq!(read_flight(&flight[..3]), None);
        assert_eq!(read_flight(&flight), Some((&b"parameters"[..], CLIENT_HELLO + 10)));
        assert_eq!(read_flight(&flight[CLIENT_HELLO + 10..]), Some((&[][..], FINISHED)));
    }

    #[test]
    fn a_quic_packet_whose_number_is_wrongly_decoded_is_not_decrypted() {
        let mut packet = [7; 20];
        PacketKey::encrypt(&NoKey, 300, &mut packet, 2);
        let decrypted = |number| {
            let mut payload = BytesMut::from(&packet[2..]);
            PacketKey::decrypt(&NoKey, number, &packet[..2], &mut payload).map(|()| payload.to_vec())
        };
        assert_eq!(decrypted(300).ok(), Some(vec![7, 7]));
        assert!(decrypted(44).is_err(), "the lowest byte of 300");
        assert!(PacketKey::decrypt(&NoKey, 0, &[], &mut BytesMut::from(&[0; 15][..])).is_err());
    }

    #[test]
    fn quic_tokens_differ_from_each_other_and_from_authentication_tags() {
        let token = |data: &[u8]| {
            let mut token = [0; 32];
            NoKey.sign(data, &mut token);
            token
        };
        assert!(token(b"1") != token(b"2") && token(b"1")[..TAG] != [0; TAG]);
        assert!(NoKey.verify(b"1", &token(b"1")).is_ok() && NoKey.verify(b"2", &token(b"1")).is_err());
    }
}
