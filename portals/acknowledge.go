package portals

// Acknowledge answers the initiator of an open delivery before it is complete, with the given fail type; the acknowledgement
// that Finish would send is not sent (a handler's own acknowledgement). It does nothing for requests that are not
// acknowledged or are answered with data.
func (ni *NI) Acknowledge(d *Delivery, fail FailType) {
	d.mark.Live("portals: a delivery")
	if !d.open || d.Header.Kind.fetches() || d.Header.AckReq == NoAck {
		return
	}
	d.outcome, d.landed = fail, d.MLength
	ni.answer(d)
	d.Header.AckReq = NoAck
}
