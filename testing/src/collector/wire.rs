//! Protocol buffers as they stand on the wire: numbered fields, nothing else.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'b> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'b [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no message of protocol buffers")]
pub struct Malformed;

/// The fields of a message in their order.
pub fn fields(mut message: &[u8]) -> Result<Vec<(u64, Field<'_>)>, Malformed> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut message)?),
            1 => {
                Field::Fixed64(u64::from_le_bytes(taken(&mut message, 8)?.try_into().map_err(|_| Malformed)?))
            }
            2 => {
                let length = usize::try_from(varint(&mut message)?).map_err(|_| Malformed)?;
                Field::Bytes(taken(&mut message, length)?)
            }
            5 => {
                Field::Fixed32(u32::from_le_bytes(taken(&mut message, 4)?.try_into().map_err(|_| Malformed)?))
            }
            _ => return Err(Malformed),
        };
        fields.push((key >> 3, field));
    }
    Ok(fields)
}

/// The messages that stand under this number.
pub fn messages(message: &[u8], number: u64) -> Result<Vec<&[u8]>, Malformed> {
    let of_number = fields(message)?.into_iter().filter(|(found, _)| *found == number);
    of_number
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => Ok(bytes),
            Field::Varint(_) | Field::Fixed64(_) | Field::Fixed32(_) => Err(Malformed),
        })
        .collect()
}

fn varint(message: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0_u64;
    for place in 0..10 {
        let [byte] = taken(message, 1)? else { return Err(Malformed) };
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Malformed)
}

fn taken<'b>(message: &mut &'b [u8], length: usize) -> Result<&'b [u8], Malformed> {
    let (taken, rest) = message.split_at_checked(length).ok_or(Malformed)?;
    *message = rest;
    Ok(taken)
}
