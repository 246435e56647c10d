package discord

import (
	"context"
	"encoding/json"
	"sync"

	"mimikit/adapters/discord/gateway"
)

// cachedPlaces bounds what is known of channels: a few MiB. What is forgotten is
// asked for.
const cachedPlaces = 50_000

// A placeCache knows the type and the parent of channels and threads.
type placeCache struct {
	mu         sync.Mutex
	now, older map[string]channelInfo
}

func newPlaceCache() *placeCache { return &placeCache{now: map[string]channelInfo{}} }

func (p *placeCache) put(c channelInfo) {
	if c.ID == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.now) >= cachedPlaces {
		p.now, p.older = map[string]channelInfo{}, p.now
	}
	c.Name = "" // whoever opens a thread names it after the message
	p.now[string(c.ID)] = c
}

func (p *placeCache) get(id string) (channelInfo, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.now[id]
	if !ok {
		c, ok = p.older[id]
	}
	return c, ok
}

func (p *placeCache) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.now, id)
	delete(p.older, id)
}

// learn takes over what an event tells of channels. What it cannot read is asked
// for when it is needed.
func (d *Bot) learn(e gateway.Event) {
	d.learnGuild(e)
	var c channelInfo
	switch e.Type {
	case "GUILD_CREATE":
		var g guildInfo
		if json.Unmarshal(e.Data, &g) != nil {
			return
		}
		for _, c := range append(g.Channels, g.Threads...) {
			c.GuildID = g.ID
			d.places.put(c)
		}
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		if json.Unmarshal(e.Data, &c) == nil {
			d.places.put(c)
		}
	case "CHANNEL_DELETE", "THREAD_DELETE":
		if json.Unmarshal(e.Data, &c) == nil {
			d.places.drop(string(c.ID))
		}
	}
}

// placeOf gives what is known of the channel that a message stands in. Discord may
// say enough with the message itself.
func (d *Bot) placeOf(ctx context.Context, m *message) (channelInfo, error) {
	if m.ChannelType != nil && !isThread(*m.ChannelType) {
		return channelInfo{ID: m.ChannelID, GuildID: m.GuildID, Type: *m.ChannelType}, nil
	}
	return d.place(ctx, string(m.ChannelID))
}

// place gives what is known of a channel, and asks when nothing is.
func (d *Bot) place(ctx context.Context, id string) (channelInfo, error) {
	if c, ok := d.places.get(id); ok {
		return c, nil
	}
	var c channelInfo
	if err := d.api.do(ctx, request{method: "GET", path: "/channels/" + id, route: "GET /channels/" + id}, &c); err != nil {
		return channelInfo{}, err
	}
	d.places.put(c)
	return c, nil
}
