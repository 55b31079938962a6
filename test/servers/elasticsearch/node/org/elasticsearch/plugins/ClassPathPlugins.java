package org.elasticsearch.plugins;

import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import org.elasticsearch.action.admin.cluster.node.info.PluginsAndModules;
import org.elasticsearch.env.Environment;

/** Plugins from the class path, named by -Dwaybill.plugins=a,b: folders below META-INF/es-plugins. */
public class ClassPathPlugins extends PluginsService {
    private final List<LoadedPlugin> found = new ArrayList<>();

    public ClassPathPlugins(Environment environment) {
        super(environment.settings(), environment.configDir(), PluginsLoader.createPluginsLoader(Set.of(), Set.of(), Map.of(), false));
        ClassLoader loader = ClassPathPlugins.class.getClassLoader();
        for (String name : System.getProperty("waybill.plugins").split(",")) {
            String file = "META-INF/es-plugins/" + name + "/plugin-descriptor.properties";
            try (InputStream text = loader.getResourceAsStream(file)) {
                PluginDescriptor descriptor = PluginDescriptor.readInternalDescriptorFromStream(text);
                String wanted = descriptor.getClassname();
                String own = wanted.equals("org.elasticsearch.xpack.security.Security") ? "org.elasticsearch.xpack.security.SecurityWithoutSaml" : wanted;
                Plugin plugin = loadPlugin(loader.loadClass(own).asSubclass(Plugin.class), environment.settings(), environment.configDir());
                found.add(new LoadedPlugin(descriptor, plugin, loader));
            } catch (Exception thrown) {
                throw new IllegalStateException("cannot load the plugin " + name, thrown);
            }
        }
        loadExtensions(found);
    }

    @Override
    protected List<LoadedPlugin> plugins() {
        return found == null ? List.of() : found;
    }

    @Override
    public PluginsAndModules info() {
        return new PluginsAndModules(List.of(), found.stream().map(LoadedPlugin::descriptor).toList());
    }

    /** Some providers want their plugin in the constructor. */
    @Override
    public <T> List<? extends T> loadServiceProviders(Class<T> service) {
        List<T> made = new ArrayList<>();
        for (var provider : ServiceLoader.load(service, ClassPathPlugins.class.getClassLoader()).stream().toList()) {
            try {
                made.add(provider.get());
            } catch (ServiceConfigurationError wantsPlugin) {
                for (LoadedPlugin each : found) {
                    try {
                        made.add(createExtension(provider.type(), service, each.instance()));
                        break;
                    } catch (RuntimeException belongsToAnother) {
                        continue;
                    }
                }
            }
        }
        return made;
    }
}
