//! `mingle operator`: shows and changes the keys that may sign for a swarm.

use std::io::{BufRead, Read};
use std::time::Duration;

use mingle_peer::error::Context;
use mingle_peer::membership::{Appointment, Membership, RecoveryKey, Role, Signer, SwarmIdentity, date, now_unix_s};
use mingle_peer::{Error, ErrorKind, Home, Identity, Result};

use crate::cli::{AcceptArgs, DelegateArgs, HomeArgs, OperatorCommand, RecoverArgs, Until};
use crate::{limits, out};

/// Shortest delegation; a shorter one is a slip of the finger.
const SHORTEST_DELEGATION: Duration = Duration::from_secs(60);
/// Longest appointment, in bytes.
const MAX_APPOINTMENT_BYTES: u64 = 64 << 10;

pub(super) fn execute(command: &OperatorCommand, json: bool) -> Result {
    match command {
        OperatorCommand::Show(home) => show(home, json),
        OperatorCommand::Delegate(arguments) => delegate(arguments, json),
        OperatorCommand::Revoke(home) => revoke(home, json),
        OperatorCommand::Accept(arguments) => accept(arguments, json),
        OperatorCommand::Recover(arguments) => recover(arguments, json),
    }
}

/// The signer of a home whose key may sign for its swarm, as operator or as delegate.
///
/// # Errors
/// The home has no swarm, or its key may not sign for it.
pub(super) fn signer_of(home: &Home) -> Result<Signer> {
    let identity = Identity::load(&home.identity())?;
    Signer::new(swarm_of(home)?, identity.keypair().clone())
}

fn swarm_of(home: &Home) -> Result<SwarmIdentity> {
    let membership = Membership::of(home)?.ok_or_else(|| {
        Error::new(ErrorKind::BadInput, format!("{} belongs to no swarm with an operator", home.root().display()))
            .hint("found one with: mingle init --swarm NAME")
    })?;
    Ok(membership.swarm)
}

fn show(home: &HomeArgs, json: bool) -> Result {
    let home = Home::at(home.home.as_deref())?;
    let swarm = swarm_of(&home)?;
    if json {
        out::line(describe(&swarm)?);
        return Ok(());
    }
    let authority = swarm.authority();
    let (founder, operator) = (swarm.founder()?, swarm.operator()?);
    out::line(format_args!("swarm     {}", swarm.name));
    out::line(format_args!("founder   {founder}"));
    match authority.recovery_number() {
        0 => out::line(format_args!("operator  {operator}, the founder")),
        number => out::line(format_args!("operator  {operator}, by recovery {number}")),
    }
    match authority.delegate_until() {
        Some((peer, until)) => {
            let is_over = if until < now_unix_s() { ", which is over" } else { "" };
            let number = authority.delegation_number();
            out::line(format_args!("delegate  {peer} until {}{is_over}, by delegation {number}", date(until)));
        }
        None => out::line("delegate  nobody"),
    }
    match swarm.recovery() {
        Some(_) => out::line("recovery  a recovery key can name another operator: mingle operator recover"),
        None => out::line("recovery  the swarm was founded without a recovery key"),
    }
    Ok(())
}

fn describe(swarm: &SwarmIdentity) -> Result<serde_json::Value> {
    let authority = swarm.authority();
    let delegate = authority.delegate_until();
    Ok(serde_json::json!({
        "schema": "mingle.operator/1",
        "swarm": swarm.name,
        "founder": swarm.founder()?.to_string(),
        "operator": swarm.operator()?.to_string(),
        "recovery_number": authority.recovery_number(),
        "recovery_key": swarm.recovery().map(|key| key.to_string()),
        "delegation_number": authority.delegation_number(),
        "delegate": delegate.map(|(peer, _)| peer.to_string()),
        "delegate_until_unix_s": delegate.map(|(_, until)| until),
    }))
}

fn delegate(arguments: &DelegateArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let mut signer = signer_of(&home)?;
    let now = now_unix_s();
    let (lasts, not_after) = match arguments.until {
        Until::For(lasts) => (lasts, now.saturating_add(lasts.as_secs())),
        Until::Date(date) => (Duration::from_secs(date.saturating_sub(now)), date),
    };
    limits::check_time("until", lasts, SHORTEST_DELEGATION..=limits::LONGEST_EVICTION)?;
    signer.delegate(Some(&arguments.to), not_after)?;
    Membership::remember(&home, signer.swarm())?;
    give(signer.swarm(), json)?;
    if !json {
        remark!("{} signs for the swarm {} until {}", arguments.to, signer.swarm().name, date(not_after));
        remark!("in its home: mingle operator accept {}", Appointment(signer.swarm().clone()));
        remark!("members hear of it with the first plan or invitation that it signs");
    }
    Ok(())
}

fn revoke(home: &HomeArgs, json: bool) -> Result {
    let home = Home::at(home.home.as_deref())?;
    let mut signer = signer_of(&home)?;
    let delegate = signer.swarm().authority().delegate_until();
    signer.delegate(None, 0)?;
    Membership::remember(&home, signer.swarm())?;
    give(signer.swarm(), json)?;
    if !json {
        match delegate {
            Some((peer, _)) => remark!("{peer} signs for the swarm {} no more", signer.swarm().name),
            None => remark!("nobody signed in the operator's place as far as this home knows; a new term begins"),
        }
        remark!("members hear of it with the next plan: mingle plan apply FILE --via ADDR, from this home");
    }
    Ok(())
}

/// Prints the appointment, and nothing else, on stdout.
fn give(swarm: &SwarmIdentity, json: bool) -> Result {
    let appointment = Appointment(swarm.clone()).to_string();
    if json {
        let mut described = describe(swarm)?;
        described["appointment"] = appointment.into();
        out::line(described);
    } else {
        out::line(appointment);
    }
    Ok(())
}

fn accept(arguments: &AcceptArgs, json: bool) -> Result {
    let text = match arguments.appointment.as_str() {
        "-" => appointment_from_input()?,
        text => text.to_owned(),
    };
    let Appointment(swarm) = text.parse()?;
    let home = Home::at(arguments.home.home.as_deref())?;
    let identity = Identity::load(&home.identity())?;
    let signer = Signer::new(swarm.clone(), identity.keypair().clone());
    if Membership::of(&home)?.is_some() {
        Membership::founder(swarm.clone()).check(&home)?;
        Membership::remember(&home, &swarm)?;
        if swarm_of(&home)? != swarm {
            return Err(Error::new(ErrorKind::Refused, format!("this home knows a newer word on {}", swarm.name))
                .hint("mingle operator show says who may sign as far as it knows"));
        }
    } else {
        signer.as_ref().map_err(|failure| Error::new(ErrorKind::Refused, failure.to_string()))?.check_time()?;
        Membership::founder(swarm.clone()).write(&home)?;
    }
    if json {
        out::line(describe(&swarm)?);
        return Ok(());
    }
    match signer.map(|signer| signer.role()) {
        Ok(Role::Delegate(until)) => {
            out::line(format_args!("this home signs for the swarm {} until {}", swarm.name, date(until)));
        }
        Ok(Role::Operator) => out::line(format_args!("this home operates the swarm {}", swarm.name)),
        Err(_) => out::line(format_args!("this home knows who may sign for the swarm {}", swarm.name)),
    }
    Ok(())
}

/// The first line of standard input.
fn appointment_from_input() -> Result<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(MAX_APPOINTMENT_BYTES).read_line(&mut line);
    read.context(ErrorKind::BadInput, "cannot read an appointment from standard input")?;
    Ok(line)
}

fn recover(arguments: &RecoverArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let identity = Identity::load(&home.identity())?;
    let recovery = RecoveryKey::load(&arguments.recovery_key)?;
    let membership = Membership::of(&home)?.unwrap_or_else(|| Membership::founder(recovery.swarm().clone()));
    let mut swarm = membership.swarm.clone();
    if !swarm.is(recovery.swarm()) {
        let message = format!(
            "{} belongs to the swarm {}, and {} is the recovery key of another, {}",
            home.root().display(),
            swarm.name,
            arguments.recovery_key.display(),
            recovery.swarm().name
        );
        return Err(Error::new(ErrorKind::Refused, message).hint("take a home of its own: mingle init --home DIR"));
    }
    if swarm.operator()? == identity.peer_id() {
        return Err(Error::new(ErrorKind::Refused, "this home holds the key that operates the swarm already").hint(
            "a key that was stolen is replaced from a home with another key: mingle init --home DIR, then there mingle operator recover",
        ));
    }
    let authority = recovery.succeed(swarm.authority(), arguments.number, &identity.peer_id())?;
    swarm.learn(&authority);
    Membership { swarm: swarm.clone(), ..membership }.write(&home)?;
    give(&swarm, json)?;
    if !json {
        let number = authority.recovery_number();
        remark!(
            "this home operates the swarm {} by recovery {number}; put the recovery key back into its safe",
            swarm.name
        );
        remark!("members hear of it with the next plan: mingle plan apply FILE --via ADDR, from this home");
    }
    Ok(())
}
