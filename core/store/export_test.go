package store

// DialWith replaces the network of a store to be opened.
func (o *Options) DialWith(d dialer) { o.dialer = d }
