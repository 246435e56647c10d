package prompts

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
)

// checkNames refuses a file that uses a field a [View] does not have, or that
// includes a file there is not, in whatever branch that stands: a template finds
// either only when it comes there.
func checkNames(tree *parse.Tree) error {
	if tree == nil || tree.Root == nil {
		return nil // words only, and none at that
	}
	return checkNode(tree.Root)
}

func checkNode(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, e := range n.Nodes {
				if err := checkNode(e); err != nil {
					return err
				}
			}
		}
	case *parse.ActionNode:
		return checkPipe(n.Pipe)
	case *parse.IfNode:
		return checkBranch(&n.BranchNode)
	case *parse.WithNode:
		return checkBranch(&n.BranchNode)
	case *parse.RangeNode:
		return checkBranch(&n.BranchNode)
	case *parse.TemplateNode:
		if role, file, ok := strings.Cut(n.Name, "/"); ok && !slices.Contains(files[role], file) {
			return fmt.Errorf("line %d: it includes %q, which does not exist; there are %s", n.Line, n.Name, allowed())
		}
		return checkPipe(n.Pipe)
	case *parse.PipeNode:
		return checkPipe(n)
	case *parse.ChainNode:
		return checkNode(n.Node)
	case *parse.FieldNode:
		return checkField(n.Ident[0])
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			return checkField(n.Ident[1])
		}
	}
	return nil
}

func checkBranch(n *parse.BranchNode) error {
	if err := checkPipe(n.Pipe); err != nil {
		return err
	}
	if err := checkNode(n.List); err != nil {
		return err
	}
	return checkNode(n.ElseList)
}

func checkPipe(p *parse.PipeNode) error {
	if p == nil {
		return nil
	}
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			if err := checkNode(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkField(name string) error {
	if fields[name] == nil {
		return fmt.Errorf("there is no .%s; there are %s", name, "."+strings.Join(fieldNames(), ", ."))
	}
	return nil
}
